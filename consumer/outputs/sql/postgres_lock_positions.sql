-- The same parameters. Locks the rows in their order: the subqueries are run one after the other,
-- and each takes its lock. Where a row is missing it is kRowsMissingState; the cast is no constant,
-- which would fail as soon as it is planned. A row is read in a subquery of its own, here and in
-- the files below, so that it is looked up by its key whatever the planner believes of the table's
-- size.
SELECT CASE WHEN count(*) < cardinality($2) THEN
  ('fencepost: a row of the ledger is missing, there are ' || count(*))::bigint END
FROM unnest($2, $3, $4) AS p(cluster, topic, partition)
CROSS JOIN LATERAL (SELECT 1 FROM {ledger} l WHERE l.pipeline = $1 AND l.cluster = p.cluster
  AND l.topic = p.topic AND l.partition = p.partition::int4 OFFSET 0 {lock}) l
