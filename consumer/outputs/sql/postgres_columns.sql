-- format_type with -1: `bpchar` and "bit", where without it is `character`, which means one.
-- The sixth: NOT NULL, and neither a default nor a trigger that could fill it.
SELECT a.attname, b.oid, format_type(b.oid, -1),
 a.attgenerated <> '' OR a.attidentity = 'a',
 has_column_privilege($1::oid, a.attnum, 'INSERT'),
 a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND t.typdefault IS NULL
 AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = a.attrelid AND NOT g.tgisinternal
                 AND g.tgtype & 2 <> 0 AND g.tgtype & 4 <> 0),
 (SELECT quote_ident(s.nspname) || '.' || quote_ident(l.collname) FROM pg_collation l
  JOIN pg_namespace s ON s.oid = l.collnamespace WHERE l.oid = a.attcollation
  AND l.collname <> 'default'), t.typcategory,
 (WITH RECURSIVE x AS (SELECT e.typelem AS oid FROM pg_type e
   WHERE e.oid = b.oid AND e.typcategory = 'A'
   UNION ALL SELECT p.typbasetype FROM x JOIN pg_type p ON p.oid = x.oid AND p.typtype = 'd')
  SELECT x.oid FROM x JOIN pg_type p ON p.oid = x.oid WHERE p.typtype <> 'd'),
 format_type(a.atttypid, a.atttypmod),
 b.typmod,
 has_column_privilege($1::oid, a.attnum, 'SELECT'),
 has_column_privilege($1::oid, a.attnum, 'UPDATE'), a.attnotnull,
 coalesce((SELECT pg_get_expr(f.adbin, f.adrelid) FROM pg_attrdef f
           WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum),
          CASE WHEN a.attidentity = 'd' THEN format('nextval(%L)', pg_get_serial_sequence(
           a.attrelid::regclass::text, a.attname)) END,
          pg_get_expr(t.typdefaultbin, 0), 'NULL'),
 coalesce((SELECT l.collname FROM pg_collation l WHERE l.oid = a.attcollation
           AND NOT l.collisdeterministic),
          (SELECT y.typname FROM pg_type y WHERE y.oid = b.oid AND y.typname = 'citext'), '')
 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid,
 LATERAL (WITH RECURSIVE d AS (SELECT t.oid, t.typtype, t.typbasetype,
    CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS typmod UNION ALL
   SELECT p.oid, p.typtype, p.typbasetype, CASE WHEN p.typtype = 'd' AND d.typmod < 0
    THEN p.typtypmod ELSE d.typmod END FROM d JOIN pg_type p ON d.typtype = 'd'
   AND p.oid = d.typbasetype) SELECT oid, typmod FROM d WHERE typtype <> 'd') b
 WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
