-- $1 pipeline, $2 record ids. In the same transaction, before the write: rows that say that nothing
-- was written for another content of these ids give way (GivesWay).
DELETE FROM {ids} WHERE pipeline = $1 AND token = 0 AND record_id = ANY ($2)
