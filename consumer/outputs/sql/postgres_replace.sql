-- $1 pipeline, $2 record ids, $3 tokens (0: the record makes no row), $4 checksums. In the same
-- transaction, before the write: rows that say that nothing was written for another content of
-- these ids give way (GivesWay). The ids are looked up one by one, whatever the planner believes of
-- the ledger's size.
DELETE FROM {ids} WHERE pipeline = $1 AND token = 0 AND record_id = ANY (ARRAY(
  SELECT r.record_id FROM unnest($2, $3, $4) r(record_id, token, crc)
  CROSS JOIN LATERAL (SELECT content_crc FROM {ids} l WHERE l.pipeline = $1
    AND l.record_id = r.record_id AND l.token = 0 OFFSET 0) l
  WHERE r.token <> 0 AND l.content_crc <> r.crc))
