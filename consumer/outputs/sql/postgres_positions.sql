-- Each transaction changes its rows: with room on their page they stay there, and no index has to
-- follow (HOT).
CREATE TABLE IF NOT EXISTS fencepost_positions (
  pipeline   text COLLATE "C" NOT NULL,
  cluster    text COLLATE "C" NOT NULL,
  topic      text COLLATE "C" NOT NULL,
  partition  integer NOT NULL,
  done       int8multirange NOT NULL,
  token      bigint NOT NULL,
  worker     text NOT NULL,
  anchors    text NOT NULL,
  forgotten  bigint NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (pipeline, cluster, topic, partition)
) WITH (fillfactor = 50);
