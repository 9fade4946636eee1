-- And $5 ranges as text. What the write answers, and updated_at; no row where there is none.
SELECT p.n, (l.done * p.range::int8multirange)::text, l.token, l.worker, l.anchors, l.forgotten,
  to_char(l.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) WITH ORDINALITY
  AS p(cluster, topic, partition, range, n)
CROSS JOIN LATERAL (SELECT * FROM {ledger} l WHERE l.pipeline = $1 AND l.cluster = p.cluster
  AND l.topic = p.topic AND l.partition = p.partition::int4 OFFSET 0) l
ORDER BY p.n
