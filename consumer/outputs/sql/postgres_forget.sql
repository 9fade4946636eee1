-- The same parameters.
DELETE FROM {ids} WHERE pipeline = $1 AND record_id = ANY ($2::text[])
