# A node that lost its memory gets its place back without a quarantine (invariant 12).
set(SOURCE locking/core/store/store_mending.cc)
set(FROM [=[
    sentinel.epoch = highest;
    sentinel.run_id = node.run_id;
    sentinel.max_ttl = max_ttl();
    Write(node, sentinel, QuarantineTime());]=])
set(TO [=[
    sentinel.epoch = highest;
    sentinel.run_id = node.run_id;
    sentinel.max_ttl = max_ttl();
    Write(node, sentinel, Millis(0));]=])
