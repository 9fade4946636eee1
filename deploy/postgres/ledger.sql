-- The ledger of fencepost: one row for each record id whose effect stands, written in the
-- transaction of the effect. `fencepost run` creates it by itself where its role may; run this once
-- where it may not, in the database of the effects table, in a schema on the role's search_path:
--
--   psql "$DSN_OF_THE_OWNER" -f ledger.sql
--
-- What the role needs then: grants.sql.
--
-- Never truncate it and never make it UNLOGGED: a record id that it forgot happens again when its
-- record comes again. Old rows are removed by `ledger: {keep: …}` in the pipeline file.

-- COLLATE "C" compares bytes: fast, and an upgrade of the system's collations cannot break the key.
CREATE TABLE IF NOT EXISTS fencepost_ledger (
  pipeline     text COLLATE "C" NOT NULL,       -- `name:` of the pipeline file
  record_id    text COLLATE "C" NOT NULL,       -- at most 512 bytes, or sha256:HEX
  token        bigint NOT NULL,                 -- fencing token of its lease; 0: nothing was written
  worker       text NOT NULL,                   -- who wrote it
  source       text NOT NULL,                   -- topic/partition/offset of the record that did
  content_crc  bigint NOT NULL,                 -- a checksum of the content, by id_content
  completed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pipeline, record_id)
);

-- For pruning, in small batches from the oldest row on. All rows of a transaction share
-- completed_at, so the index holds them as one deduplicated entry.
CREATE INDEX IF NOT EXISTS fencepost_ledger_completed_at
  ON fencepost_ledger (pipeline, completed_at);

-- For pipelines with `record_id: position`: one row a partition, beside the above, which then has the
-- ids of dead letters. PostgreSQL 14 or later. It does not grow: offsets that were done out of order
-- merge.
CREATE TABLE IF NOT EXISTS fencepost_positions (
  pipeline   text COLLATE "C" NOT NULL,      -- `name:` of the pipeline file
  cluster    text COLLATE "C" NOT NULL,      -- the id of the Kafka cluster
  topic      text COLLATE "C" NOT NULL,
  partition  integer NOT NULL,
  done       int8multirange NOT NULL,        -- offsets whose effects stand
  token      bigint NOT NULL,                -- of the last write: its fencing token (the greatest)
  worker     text NOT NULL,                  --   and who wrote it
  anchors    text NOT NULL,                  -- some done records, to recognise a recreated topic
  forgotten  bigint NOT NULL DEFAULT 0,      -- how often `fencepost forget` took offsets back
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (pipeline, cluster, topic, partition)
) WITH (fillfactor = 50);                    -- room for new versions of a row on its page
