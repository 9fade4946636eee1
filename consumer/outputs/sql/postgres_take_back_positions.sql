-- The same parameters. Answers the ranges that were taken back, a row each. The rows of dead letters
-- in them go, too: behind the prefix of a partition's ids are numbers only.
WITH was AS MATERIALIZED (SELECT p.cluster, p.topic, p.partition::int4 AS partition,
    p.range::int8multirange AS range, l.done * p.range::int8multirange AS gone
  FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS p(cluster, topic, partition, range)
  CROSS JOIN LATERAL (SELECT done FROM {ledger} l WHERE l.pipeline = $1 AND l.cluster = p.cluster
    AND l.topic = p.topic AND l.partition = p.partition::int4 OFFSET 0 FOR UPDATE) l),
letters AS (DELETE FROM {ids} i USING (SELECT range,
    cluster || '/' || topic || '/' || partition || '/' AS prefix FROM was) w
  WHERE i.pipeline = $1 AND i.token = 0
  AND CASE WHEN starts_with(i.record_id, w.prefix)
    THEN w.range @> substr(i.record_id, length(w.prefix) + 1)::bigint ELSE false END)
UPDATE {ledger} l SET done = l.done - w.range, forgotten = l.forgotten + 1,
  anchors = CASE WHEN isempty(l.done - w.range) THEN '' ELSE l.anchors END
FROM was w
WHERE l.pipeline = $1 AND l.cluster = w.cluster AND l.topic = w.topic
  AND l.partition = w.partition AND NOT isempty(w.gone)
RETURNING w.gone::text
