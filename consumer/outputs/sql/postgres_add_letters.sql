-- $1 pipeline; of dead letters: $2 ids, $3 clusters, $4 topics, $5 partitions, $6 offsets, $7 worker,
-- $8 sources, $9 checksums. Under the rows' locks, before the write adds their offsets: a row for
-- each that is not done yet.
INSERT INTO {ids} (pipeline, record_id, token, worker, source, content_crc, completed_at)
SELECT $1, p.record_id, 0, $7, p.source, p.crc, now()
FROM unnest($2, $3, $4, $5, $6, $8, $9)
  AS p(record_id, cluster, topic, partition, off, source, crc)
CROSS JOIN LATERAL (SELECT l.done @> p.off AS known FROM {ledger} l WHERE l.pipeline = $1
  AND l.cluster = p.cluster AND l.topic = p.topic AND l.partition = p.partition::int4 OFFSET 0) l
WHERE NOT l.known ORDER BY p.record_id COLLATE "C"
ON CONFLICT (pipeline, record_id) DO NOTHING
