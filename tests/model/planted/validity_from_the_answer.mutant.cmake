# A lease is reckoned from the answers, not from before its token was drawn (invariant 4).
set(SOURCE locking/core/lock/lock_core_rounds.cc)
set(FROM [=[
    slot.valid_until = slot.started + slot.ttl - options_.Drift(slot.ttl);]=])
set(TO [=[
    slot.valid_until = now.boot + slot.ttl - options_.Drift(slot.ttl);]=])
