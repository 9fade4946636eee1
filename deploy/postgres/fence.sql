-- A fence for anything in this database: the transaction of whoever holds a fencepost lock shows its
-- fencing token first, and one whose lock has passed on to somebody else is refused. For effects
-- that `fencepost run` does not write itself; its own outputs have the ledger (ledger.sql).
-- What it promises, and what not: README.md.
--
--   psql "$DSN_OF_THE_OWNER" -f fence.sql        once; again changes nothing
--
-- Both objects land in the first schema of the search_path of whoever installs them. Then:
--
--   GRANT EXECUTE ON FUNCTION fencepost_admit(text, bigint) TO app;
--
--   BEGIN;
--   SELECT fencepost_admit('account-7', :token);   -- raises ZF001 for a token that is too low
--   UPDATE account SET balance = balance - 10 WHERE id = 7;
--   COMMIT;

BEGIN;
SELECT pg_advisory_xact_lock(hashtext('fencepost_fence'));  -- two installations at once

-- COLLATE "C" compares bytes. fillfactor: each admission updates its row in place.
CREATE TABLE IF NOT EXISTS fencepost_fence (
  resource    text COLLATE "C" PRIMARY KEY,     -- what is guarded: mostly the name of the lock
  token       bigint NOT NULL CHECK (token > 0),  -- the highest that was admitted
  admitted_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- The function runs as its owner (SECURITY DEFINER), so that the writers need no right on the table:
-- they can raise a fence, never lower or drop it. So its search_path is nailed to the schema of the
-- table, whatever the caller's is, with pg_temp last.
DO $install$
BEGIN
  EXECUTE format($sql$
    CREATE OR REPLACE FUNCTION fencepost_admit(resource text, token bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
    SET search_path = pg_catalog, %1$I, pg_temp
    AS $body$
    #variable_conflict use_column
    DECLARE
      highest bigint;
    BEGIN
      IF $1 IS NULL OR $2 IS NULL OR $2 <= 0 THEN
        RAISE EXCEPTION 'fencepost_admit needs a resource and a token above 0'
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      -- Inserts, or locks the row and waits for whoever else has it: also where the WHERE then
      -- says no. Read and written in one statement, so the first admission of all cannot race.
      INSERT INTO fencepost_fence AS fence (resource, token) VALUES ($1, $2)
      ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token, admitted_at = now()
        WHERE fence.token <= EXCLUDED.token;
      IF FOUND THEN
        RETURN true;
      END IF;
      SELECT fence.token INTO highest FROM fencepost_fence AS fence WHERE fence.resource = $1;
      RAISE EXCEPTION 'fencing token %% of resource "%%" is too low: %% was admitted', $2, $1, highest
        USING ERRCODE = 'ZF001', HINT = 'The lock has passed on to another holder: give up.';
    END
    $body$
  $sql$, current_schema());
END
$install$;

REVOKE ALL ON FUNCTION fencepost_admit(text, bigint) FROM PUBLIC;
COMMIT;
