-- $1 pipeline, $2 record ids. A row an id, in their order: token, content_crc, worker, source,
-- completed_at; NULLs where there is no row.
SELECT l.token, l.content_crc, l.worker, l.source,
  to_char(l.completed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM unnest($2::text[]) WITH ORDINALITY r(record_id, n)
LEFT JOIN LATERAL (SELECT * FROM {ids} l
  WHERE l.pipeline = $1 AND l.record_id = r.record_id OFFSET 0) l ON true
ORDER BY r.n
