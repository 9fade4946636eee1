# The offsets of a transaction count what is ready for the next one.
set(SOURCE consumer/flow/flow_writing.cc)
set(FROM [=[
      if (in->stage == Stage::kFinished || in->stage == Stage::kWriting) continue;]=])
set(TO [=[
      if (in->stage == Stage::kFinished || in->stage == Stage::kWriting ||
          in->stage == Stage::kReady) {
        continue;
      }]=])
