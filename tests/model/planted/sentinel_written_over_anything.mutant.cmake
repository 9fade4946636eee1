# A sentinel is written whatever stands there by then (invariant 13).
set(SOURCE locking/model/node_model.cc)
set(FROM [=[
  if (sentinel_ != write.expected) return sentinel_;]=])
set(TO [=[
  static_cast<void>(write.expected);]=])
