# A node counts, of whatever generation of the store it is (invariant 14).
set(TESTS unit/store)
set(CAUGHT_BY StoreLists.NeverCountDisjointQuorumsAndAreMendedInTheEnd)
set(SOURCE locking/core/store/store_members.cc)
set(FROM [=[
  return InStore(node) && Generation(node.sentinel->epoch) == generation_ && !node.blocks;]=])
set(TO [=[
  return InStore(node) && !node.blocks;]=])
