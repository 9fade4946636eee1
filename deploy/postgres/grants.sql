-- The least that the role of a pipeline's workers needs where somebody else makes the tables
-- (ledger.sql, `fencepost tables apply`). Copy it, put in your names for the role `app` and the
-- table `effects` (a line for each table), uncomment what your pipeline file needs as well, and run
-- it in the database of the tables:
--
--   psql "$DSN_OF_THE_OWNER" -f grants.sql

GRANT SELECT, INSERT, DELETE ON fencepost_ledger TO app;
GRANT INSERT ON effects TO app;

-- record_id: position
--   GRANT SELECT, INSERT, UPDATE ON fencepost_positions TO app;

-- on_conflict: update
--   GRANT SELECT, UPDATE ON effects TO app;

-- on_null_value: delete
--   GRANT SELECT, DELETE ON effects TO app;

-- All roles have these two unless they were revoked from PUBLIC:
--   GRANT CONNECT ON DATABASE :"DBNAME" TO app;
--   GRANT USAGE ON SCHEMA public TO app;

-- statement, beside what it does itself; all roles have it unless it was revoked:
--   GRANT TEMPORARY ON DATABASE :"DBNAME" TO app;
