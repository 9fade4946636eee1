-- MayPrune (ledger.h).
CASE WHEN source !~ '^[^/]+/[0-9]{1,9}/[0-9]{1,18}$' THEN false
  WHEN split_part(source, '/', 1) <> ALL ($9::text[]) THEN true
  ELSE EXISTS (SELECT FROM unnest($6::text[], $7::bigint[], $8::bigint[]) c(topic, part, next)
    WHERE c.topic = split_part(source, '/', 1)
    AND c.part = split_part(source, '/', 2)::bigint
    AND split_part(source, '/', 3)::bigint < c.next) END
