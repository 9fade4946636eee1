# A lease goes on where no quorum of nodes has kept it (invariant 8).
set(TESTS model/core)
set(CAUGHT_BY Lease.IsLostAtOnceWhenNoQuorumOfNodesHasKeptIt)
set(SOURCE locking/core/lock/lock_core_lease.cc)
set(FROM [=[
  return slot.forgot == 0 || Count(]=])
set(TO [=[
  return slot.forgot != 0 || Count(]=])
