walk AS (SELECT n, 0::bigint AS step, coalesce(max(height) FILTER (WHERE step = 0), 0) AS height,
    NULL::bigint AS ord, false AS gone FROM step GROUP BY n
  UNION ALL SELECT w.n, s.step,
    CASE WHEN s.height <= w.height THEN w.height WHEN s.del THEN 0 ELSE s.height END,
    CASE WHEN s.height <= w.height THEN w.ord WHEN s.del THEN NULL ELSE s.ord END,
    w.gone OR (s.del AND w.height > 0 AND s.height > w.height)
  FROM walk w JOIN step s ON s.n = w.n AND s.step = w.step + 1),
left_over AS MATERIALIZED (SELECT DISTINCT ON (n) n, ord, gone FROM walk ORDER BY n, walk.step DESC)
