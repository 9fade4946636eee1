-- WITHOUT ROWID: the primary key is the table, one tree less to write.
CREATE TABLE IF NOT EXISTS fencepost_ledger (
  pipeline     text NOT NULL,
  record_id    text NOT NULL,
  token        bigint NOT NULL,
  worker       text NOT NULL,
  source       text NOT NULL,
  content_crc  bigint NOT NULL,
  completed_at timestamptz NOT NULL,
  PRIMARY KEY (pipeline, record_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fencepost_ledger_completed_at
  ON fencepost_ledger (pipeline, completed_at);
