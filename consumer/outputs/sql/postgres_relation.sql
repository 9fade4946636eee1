SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind,
 has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
 row_security_active(c.oid), c.relpersistence,
 (SELECT string_agg(quote_ident(p.relname), ', ') FROM pg_partition_tree(c.oid) t
  JOIN pg_class p ON p.oid = t.relid WHERE p.relkind = 'f' OR p.relpersistence <> 'p'),
 has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE')
 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)
