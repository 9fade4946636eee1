-- $1 pipeline, $2 record ids, $3 when they were completed: one that has changed since stays.
DELETE FROM {ids} l USING unnest($2::text[], $3::text[]) old(id, at)
  WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost prune ' || $1, 0)))
  AND l.pipeline = $1 AND l.record_id = old.id AND l.completed_at = old.at::timestamptz
