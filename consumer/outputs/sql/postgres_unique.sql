SELECT i.indexrelid, a.attname FROM pg_index i
 CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(number, n)
 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
 WHERE i.indrelid = $1::oid AND i.indisunique AND i.indisvalid AND i.indimmediate
 AND i.indpred IS NULL AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
 ORDER BY i.indexrelid, k.n
