-- varbinary: bytes are compared, and no space at the end is lost, as in MySQL's text.
CREATE TABLE IF NOT EXISTS fencepost_ledger (
  pipeline     varbinary(255) NOT NULL,
  record_id    varbinary(512) NOT NULL,
  token        bigint NOT NULL,
  worker       text CHARACTER SET utf8mb4 NOT NULL,
  source       text CHARACTER SET utf8mb4 NOT NULL,
  content_crc  bigint NOT NULL,
  completed_at datetime(6) NOT NULL,
  PRIMARY KEY (pipeline, record_id),
  KEY fencepost_ledger_completed_at (pipeline, completed_at)
) ENGINE=InnoDB;
