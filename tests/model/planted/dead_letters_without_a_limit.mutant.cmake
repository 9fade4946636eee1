# Whatever is bad goes out, however many there were in a row.
set(SOURCE consumer/flow/flow_handling.cc)
set(FROM [=[
  return !in.cause || in.let_out;]=])
set(TO [=[
  return true;]=])
