-- The least that the account of a pipeline's workers needs where somebody else makes the tables
-- (ledger.sql, `fencepost tables apply`). Copy it, put in your names for the account `app` and the
-- table `effects` (a line for each table), uncomment what your pipeline file needs as well, and run
-- it in the database of output.mysql:
--
--   mysql -h HOST -u OWNER -p DATABASE < grants.sql

GRANT SELECT, INSERT, DELETE ON fencepost_ledger TO app;
GRANT INSERT ON effects TO app;

-- record_id: position
--   GRANT SELECT, INSERT, UPDATE ON fencepost_positions TO app;

-- on_conflict: ignore or update
--   GRANT SELECT, UPDATE ON effects TO app;

-- on_null_value: delete
--   GRANT SELECT, DELETE ON effects TO app;
