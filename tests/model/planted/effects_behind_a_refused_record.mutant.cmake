# Behind a record that the output refused, the rest of its order chain is written.
set(SOURCE consumer/outputs/write_plan.cc)
set(FROM [=[
  const auto chain = held_.find(item(place).chain);
  if (chain == held_.end()) return true;]=])
set(TO [=[
  const auto chain = held_.find(item(place).chain);
  if (place < items_->size()) return true;]=])
