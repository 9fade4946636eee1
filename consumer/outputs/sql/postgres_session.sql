-- lock_timeout: another session that sits on our rows is reported, not waited for without end. Limits
-- of the role or the dsn that are stricter stay. synchronous_commit: what was acknowledged must
-- survive; remote_apply is stronger than `on` and stays. What a text means is for no role or
-- database to say.
SELECT set_config(name, ours, false) FROM pg_settings JOIN (VALUES
 ('idle_in_transaction_session_timeout', '10000'), ('lock_timeout', '10000'),
 ('statement_timeout', '25000')) AS limits(name, ours) USING (name)
 WHERE setting::bigint = 0 OR setting::bigint > ours::bigint;
SELECT set_config('synchronous_commit', 'on', false)
 WHERE current_setting('synchronous_commit') <> 'remote_apply';
SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres';
SET extra_float_digits = 1; SET array_nulls = on; SET bytea_output = 'hex'; SET xmloption = 'content';
SET lc_monetary = 'C'
