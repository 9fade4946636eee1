# An extension makes the name where nothing stands (invariant 8).
set(SOURCE locking/model/node_model.cc)
set(FROM [=[
    unit.expires = std::max(unit.expires, unit.deadline + 2 * max_skew);
  } else {]=])
set(TO [=[
    unit.expires = std::max(unit.expires, unit.deadline + 2 * max_skew);
  } else if (unit.state == State::kAbsent) {
    reply.code = ReplyCode::kExtended;
    unit = MakeHeld(op, op.token, now, max_skew);
  } else {]=])
