-- $1 pipeline, $2 chained. In the same transaction, after the write: the record ids that it did not
-- insert, with the ledger's token, source and content_crc. Where there are any, the transaction
-- writes to the log, so that its COMMIT waits for the standbys that the found rows' own may still
-- wait for. Chained: a row with another checksum is the error kOtherContentState; and so is, chained
-- or not, one that gives way (postgres_replace). Of a record that makes no row the checksum is -1,
-- which no row is in conflict with.
--
-- An uncorrelated subquery runs once, and only where there is a row to go with. The cast says what
-- is wrong in the server's log; it is no constant, which would fail as soon as it is planned.
SELECT r.record_id, l.token, l.source, l.content_crc,
  (SELECT pg_logical_emit_message(true, 'fencepost', '')),
  CASE WHEN r.crc <> -1 AND l.content_crc <> r.crc
      AND (l.token = 0 OR ($2 AND l.content_crc >> 32 = r.crc >> 32)) THEN
    ('fencepost: rolled back, since the id of ' || l.source || ' has come with other content')::bigint
  END
FROM (SELECT split_part(t, ' ', 1)::bigint AS crc, substr(t, strpos(t, ' ') + 1) AS record_id
  FROM unnest(nullif(current_setting('fencepost.rest', true), '')::text[]) t) r
LEFT JOIN LATERAL (SELECT token, source, content_crc FROM {ids} l
  WHERE l.pipeline = $1 AND l.record_id = r.record_id OFFSET 0) l ON true
