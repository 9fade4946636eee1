# The name is marked DONE when its record is handed to the output.
set(SOURCE consumer/flow/flow_writing.cc)
set(FROM [=[
    if (in.leased) locks_->SetPhase(in.lock, Phase::kWriting);
    batch.records]=])
set(TO [=[
    if (in.leased) locks_->SetPhase(in.lock, Phase::kWriting);
    scratch_ = LockName(options_.pipeline, in.identity.id);
    locks_->MarkDone({.name = scratch_, .token = in.token, .crc = in.identity.crc,
                      .remember = options_.remember_done}, now);
    batch.records]=])
