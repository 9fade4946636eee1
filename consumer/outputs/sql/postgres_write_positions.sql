-- Behind it, the ledger's part of a write.
done AS (UPDATE {ledger} l SET done = l.done + p.range, token = p.new_token, worker = $2,
    anchors = coalesce(nullif(p.new_anchors, ''), l.anchors), updated_at = now()
  FROM part p
  WHERE l.pipeline = $1 AND l.cluster = p.cluster AND l.topic = p.topic
    AND l.partition = p.partition AND p.known <> p.range)
