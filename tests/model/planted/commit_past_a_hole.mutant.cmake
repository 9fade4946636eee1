# The watermark passes every record that was delivered, finished or not.
set(SOURCE consumer/flow/flow.cc)
set(FROM [=[
      partition.slots.empty() ? partition.position : partition.slots.front().offset;]=])
set(TO [=[
      partition.position;]=])
