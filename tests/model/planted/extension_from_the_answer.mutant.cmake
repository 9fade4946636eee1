# An extension counts from its answers, not from before it was asked for (invariant 4).
set(SOURCE locking/core/lock/lock_core_lease.cc)
set(FROM [=[
    slot.valid_until = slot.extension_sent + slot.ttl - options_.Drift(slot.ttl);]=])
set(TO [=[
    slot.valid_until = now.boot + slot.ttl - options_.Drift(slot.ttl);]=])
