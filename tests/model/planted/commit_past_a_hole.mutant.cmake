# The watermark passes every record that was delivered, finished or not.
set(SOURCE consumer/flow/flow.cc)
set(FROM [=[
      partition.records.empty() ? partition.position : partition.records.front()->record.offset;]=])
set(TO [=[
      partition.position;]=])
