-- The ledger of fencepost in MySQL 8 or MariaDB: one row for each record id whose effect stands,
-- written in the transaction of the effect. `fencepost run` creates it by itself where its account
-- may; run this once where it may not, in the database of output.mysql:
--
--   mysql -h HOST -u OWNER -p DATABASE < ledger.sql
--
-- What the account needs then: grants.sql.
--
-- Never truncate it: a record id that it forgot happens again when its record comes again. Old rows
-- are removed by `ledger: {keep: …}` in the pipeline file.

-- varbinary: bytes are compared, and no space at the end is lost.
CREATE TABLE IF NOT EXISTS fencepost_ledger (
  pipeline     varbinary(255) NOT NULL,          -- `name:` of the pipeline file
  record_id    varbinary(512) NOT NULL,          -- at most 512 bytes, or sha256:HEX
  token        bigint NOT NULL,                  -- fencing token of its lease; 0: nothing was written
  worker       text CHARACTER SET utf8mb4 NOT NULL,  -- who wrote it
  source       text CHARACTER SET utf8mb4 NOT NULL,  -- topic/partition/offset of the record
  content_crc  bigint NOT NULL,                  -- a checksum of the content, by id_content
  completed_at datetime(6) NOT NULL,             -- UTC
  PRIMARY KEY (pipeline, record_id),
  KEY fencepost_ledger_completed_at (pipeline, completed_at)
) ENGINE=InnoDB;

-- For pipelines with `record_id: position`: one row a partition, beside the above, which then has the
-- ids of dead letters. It does not grow: offsets that were done out of order merge.
CREATE TABLE IF NOT EXISTS fencepost_positions (
  pipeline    varbinary(255) NOT NULL,           -- `name:` of the pipeline file
  cluster     varbinary(512) NOT NULL,           -- the id of the Kafka cluster
  topic       varbinary(512) NOT NULL,
  `partition` int NOT NULL,
  done        longtext CHARACTER SET ascii NOT NULL,  -- offsets whose effects stand: {[0,5),[7,9)}
  token       bigint NOT NULL,                   -- of the last write: its fencing token (the greatest)
  worker      text CHARACTER SET utf8mb4 NOT NULL,    --   and who wrote it
  anchors     text CHARACTER SET ascii NOT NULL,      -- some done records, to recognise a recreated topic
  forgotten   bigint NOT NULL DEFAULT 0,         -- how often `fencepost forget` took offsets back
  updated_at  datetime(6) NOT NULL,              -- UTC
  PRIMARY KEY (pipeline, cluster, topic, `partition`)
) ENGINE=InnoDB;
