-- One worker of a pipeline prunes at a time; the others find nothing to do. (FOR UPDATE SKIP LOCKED
-- would need the right to UPDATE the ledger, which nobody should have.)
--
-- $1 pipeline, $2 keep in seconds, $3 most rows to delete, $4 most rows to look at, $5 where to
-- begin, $6 $7 $8 topic, partition and offset of what is committed, $9 all topics. The answer: rows
-- deleted, rows looked at, and the last row's time. The window is walked by the index (pipeline,
-- completed_at), and the rows are deleted by their place (ctid), which in a partitioned ledger
-- names one row a partition: so the rule is asked for again, as it must be of a row that another
-- session changes while this statement waits for it.
WITH mine AS MATERIALIZED (SELECT
  pg_try_advisory_xact_lock(hashtextextended('fencepost prune ' || $1, 0)) AS got),
seen AS MATERIALIZED (SELECT ctid AS at, completed_at, source FROM {ids}
  WHERE (SELECT got FROM mine) AND pipeline = $1
  AND completed_at < now() - make_interval(secs => $2::float8)
  AND completed_at >= $5::timestamptz
  ORDER BY completed_at LIMIT $4::bigint),
gone AS (DELETE FROM {ids} WHERE pipeline = $1
  AND completed_at < now() - make_interval(secs => $2::float8) AND {may_prune}
  AND ctid = ANY (ARRAY(SELECT at FROM seen WHERE {may_prune} LIMIT $3::bigint)) RETURNING 1)
SELECT (SELECT count(*) FROM gone), count(*), max(completed_at)::text,
  (max(completed_at) + interval '1 microsecond')::text FROM seen
