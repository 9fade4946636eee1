-- $1 pipeline; of records that are read elsewhere than their ids say: $2 ids, $3 clusters, $4 topics,
-- $5 partitions, $6 offsets. Under the rows' locks, before the write: the offset of a dead letter
-- that comes back is not done, and its row goes.
WITH gone AS (DELETE FROM {ids} WHERE pipeline = $1 AND token = 0 AND record_id = ANY ($2)
  RETURNING record_id)
UPDATE {ledger} l SET done = l.done - o.offsets
FROM (SELECT r.cluster, r.topic, r.partition::int4 AS partition,
    range_agg(int8range(r.off, r.off + 1)) AS offsets
  FROM unnest($2, $3, $4, $5, $6) r(record_id, cluster, topic, partition, off)
  WHERE r.record_id IN (SELECT record_id FROM gone) GROUP BY 1, 2, 3) o
WHERE l.pipeline = $1 AND l.cluster = o.cluster AND l.topic = o.topic AND l.partition = o.partition
