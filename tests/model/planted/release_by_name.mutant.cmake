# A release frees whoever holds the name, not only its own lock.
set(SOURCE locking/model/node_model.cc)
set(FROM [=[
  if (HeldBy(unit, op)) {
    reply.code = HeldNow(unit, now) ? ReplyCode::kFreed : ReplyCode::kExpired;]=])
set(TO [=[
  if (HeldBy(unit, op) || (op.kind == OpKind::kRelease && unit.state == State::kHeld)) {
    reply.code = HeldNow(unit, now) ? ReplyCode::kFreed : ReplyCode::kExpired;]=])
