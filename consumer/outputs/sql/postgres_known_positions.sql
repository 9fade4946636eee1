-- What the ledger by position knows of a batch, for a write. `done * range` once a partition: what is asked row by
-- row is only the small part of `done` that lies in the batch, and mostly there is none. The row is
-- locked, so `done` stays what it is here.
part AS MATERIALIZED (SELECT p.n, p.cluster, p.topic, p.partition::int4 AS partition,
    p.range::int8multirange AS range, p.token AS new_token, p.anchors AS new_anchors,
    l.done * p.range::int8multirange AS known, l.token, l.worker, l.anchors, l.forgotten
  FROM unnest($3, $4, $5, $6, $7, $8) WITH ORDINALITY
    AS p(cluster, topic, partition, range, token, anchors, n)
  CROSS JOIN LATERAL (SELECT done, token, worker, anchors, forgotten FROM {ledger} l
    WHERE l.pipeline = $1 AND l.cluster = p.cluster AND l.topic = p.topic
    AND l.partition = p.partition::int4 OFFSET 0) l),
known AS MATERIALIZED (SELECT n, known FROM part WHERE NOT isempty(known))
