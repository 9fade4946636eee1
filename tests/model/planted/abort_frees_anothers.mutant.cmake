# The abort of an attempt that was not granted frees the lock of the one in its way.
set(SOURCE locking/model/node_model.cc)
set(FROM [=[
  if (HeldBy(unit, op)) {
    reply.code = HeldNow(unit, now) ? ReplyCode::kFreed : ReplyCode::kExpired;]=])
set(TO [=[
  if (HeldBy(unit, op) || (op.kind == OpKind::kAbort && unit.state == State::kHeld)) {
    reply.code = HeldNow(unit, now) ? ReplyCode::kFreed : ReplyCode::kExpired;]=])
