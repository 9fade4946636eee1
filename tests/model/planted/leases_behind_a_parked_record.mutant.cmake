# What is behind a record whose first round failed keeps its lease.
set(SOURCE consumer/flow/flow.cc)
set(FROM [=[
    if (!held) return;
    BackToQueue(*next, now);]=])
set(TO [=[
    if (!held) return;
    static_cast<void>(now);]=])
