-- What a parameter's type is called, and what it is below any domains.
WITH RECURSIVE d AS (SELECT oid, typtype, typbasetype FROM pg_type WHERE oid = $1::oid
 UNION ALL SELECT p.oid, p.typtype, p.typbasetype FROM d JOIN pg_type p ON d.typtype = 'd'
 AND p.oid = d.typbasetype)
 SELECT d.oid, format_type($1::oid, -1), (WITH RECURSIVE x AS (SELECT e.typelem AS oid
   FROM pg_type e WHERE e.oid = d.oid AND e.typcategory = 'A'
   UNION ALL SELECT p.typbasetype FROM x JOIN pg_type p ON p.oid = x.oid AND p.typtype = 'd')
  SELECT x.oid FROM x JOIN pg_type p ON p.oid = x.oid WHERE p.typtype <> 'd')
 FROM d WHERE typtype <> 'd'
