-- lock_timeout: another session that sits on our rows is reported, not waited for without end. Limits
-- of the role or the dsn that are stricter stay. synchronous_commit: what was acknowledged must
-- survive; remote_apply is stronger than `on` and stays.
SELECT set_config(name, ours, false) FROM pg_settings JOIN (VALUES
 ('idle_in_transaction_session_timeout', '10000'), ('lock_timeout', '10000'),
 ('statement_timeout', '25000')) AS limits(name, ours) USING (name)
 WHERE setting::bigint = 0 OR setting::bigint > ours::bigint;
SELECT set_config('synchronous_commit', 'on', false)
 WHERE current_setting('synchronous_commit') <> 'remote_apply'
