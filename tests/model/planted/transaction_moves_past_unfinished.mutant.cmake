# The offsets of a transaction count what is ready for the next one.
set(SOURCE consumer/flow/flow_writing.cc)
set(FROM [=[
      if (slot.record == nullptr || slot.record->stage == Stage::kWriting) continue;]=])
set(TO [=[
      if (slot.record == nullptr || slot.record->stage == Stage::kWriting ||
          slot.record->stage == Stage::kReady) {
        continue;
      }]=])
