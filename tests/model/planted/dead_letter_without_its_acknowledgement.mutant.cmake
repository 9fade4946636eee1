# A dead letter that is out is taken for published as soon as time passes.
set(SOURCE consumer/flow/flow_partitions.cc)
set(FROM [=[
  if (now.boot >= report_at_) Report(now);]=])
set(TO [=[
  if (now.boot >= report_at_) Report(now);
  for (InFlight& in : pool_) {
    if (in.stage == Stage::kDying) Buried(in, now);
  }]=])
