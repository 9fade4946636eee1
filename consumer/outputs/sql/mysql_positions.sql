-- A replay's id may name any cluster and topic that fit into an id. The texts are of what fencepost
-- writes itself.
CREATE TABLE IF NOT EXISTS fencepost_positions (
  pipeline    varbinary(255) NOT NULL,
  cluster     varbinary(512) NOT NULL,
  topic       varbinary(512) NOT NULL,
  `partition` int NOT NULL,
  done        longtext CHARACTER SET ascii NOT NULL,
  token       bigint NOT NULL,
  worker      text CHARACTER SET utf8mb4 NOT NULL,
  anchors     text CHARACTER SET ascii NOT NULL,
  forgotten   bigint NOT NULL DEFAULT 0,
  updated_at  datetime(6) NOT NULL,
  PRIMARY KEY (pipeline, cluster, topic, `partition`)
) ENGINE=InnoDB;
