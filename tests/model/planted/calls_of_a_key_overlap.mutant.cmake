# A record's handler starts although the one before it in its order chain is not handled.
set(SOURCE consumer/flow/flow_handling.cc)
set(FROM [=[
    if (stale || (early && options_.handler.outside())) continue;]=])
set(TO [=[
    if (stale) continue;]=])
