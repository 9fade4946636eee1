# The offset moves once the DONE marks were answered, however few took them.
set(SOURCE consumer/flow/flow_writing.cc)
set(FROM [=[
  if (majority) return Finish(in, now);]=])
set(TO [=[
  if (majority || in.effect_done) return Finish(in, now);]=])
