CREATE TABLE IF NOT EXISTS fencepost_positions (
  pipeline    text NOT NULL,
  cluster     text NOT NULL,
  topic       text NOT NULL,
  "partition" integer NOT NULL,
  done        text NOT NULL,
  token       bigint NOT NULL,
  worker      text NOT NULL,
  anchors     text NOT NULL,
  forgotten   bigint NOT NULL DEFAULT 0,
  updated_at  timestamptz NOT NULL,
  PRIMARY KEY (pipeline, cluster, topic, "partition")
) WITHOUT ROWID;
