# What is behind a record whose first round failed keeps its lease.
set(SOURCE consumer/flow/flow_locks.cc)
set(FROM [=[
    if (next->stage < Stage::kLocking || next->stage > Stage::kReady) return;
    BackToQueue(*next, now);]=])
set(TO [=[
    if (next->stage < Stage::kLocking || next->stage > Stage::kReady) return;
    static_cast<void>(now);]=])
