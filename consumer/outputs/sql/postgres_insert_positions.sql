-- $1 pipeline, $2 clusters, $3 topics, $4 partitions: of all these three, in the order of the keys.
INSERT INTO {ledger} (pipeline, cluster, topic, partition, done, token, worker, anchors, updated_at)
SELECT $1, cluster, topic, partition::int4, '{}', 0, '', '', now()
FROM unnest($2, $3, $4) AS p(cluster, topic, partition)
ON CONFLICT (pipeline, cluster, topic, partition) DO NOTHING
