-- Sessions of this pipeline that wait in a statement for the rest of what their client sends, for as
-- long as a transaction may take (transaction_timeout, PostgreSQL 17): it is frozen. Before 17 nothing
-- else ends them, and the rows that they have locked stay locked. A name that the dsn gives tells no
-- pipeline: others may have it.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
 AND usename = current_user AND pid <> pg_backend_pid()
 AND application_name LIKE 'fencepost/%'
 AND regexp_replace(application_name, '/[^/]*$', '') =
 regexp_replace(current_setting('application_name'), '/[^/]*$', '')
 AND state = 'active' AND wait_event = 'ClientRead'
 AND state_change < clock_timestamp() - interval '28 s'
