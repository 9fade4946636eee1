// The steps of a WriteRetry, carried out.
#include <utility>

#include "consumer/outputs/write_retry.h"

namespace fencepost::consumer {

tl::expected<std::vector<WriteOutcome>, OutputError> WriteStep(Output& output,
                                                               const WriteRequest& request,
                                                               const WriteRetry::Step& step) {
  if (step.reconnect) {
    if (auto prepared = output.Prepare(); !prepared) {
      prepared.error().failure = WriteFailure::kUnavailable;
      return tl::unexpected(std::move(prepared.error()));
    }
  }
  if (step.items.size() == request.items.size() && !step.apart) return output.Write(request);
  WriteRequest part{.items = {},
                    .offsets = request.offsets,
                    .epoch = request.epoch,
                    .apart = step.apart,
                    .table_takes = step.table_takes};
  for (const std::size_t item : step.items) part.items.push_back(request.items[item]);
  return output.Write(part);
}

tl::expected<std::vector<WriteOutcome>, OutputError> WriteAtOnce(Output& output, WriteRetry& retry,
                                                                 const WriteRequest& request,
                                                                 std::uint64_t batch,
                                                                 std::uint64_t answered) {
  retry.Begin(batch, answered, request.items, locking::Instant());
  for (WriteRetry::Step step = retry.Next(); step.kind != WriteRetry::Step::Kind::kDone;
       step = retry.Next()) {
    if (step.kind == WriteRetry::Step::Kind::kWait) continue;
    auto outcomes = WriteStep(output, request, step);
    if (outcomes) {
      retry.OnWritten(std::move(*outcomes));
      continue;
    }
    const OutputError& error = outcomes.error();
    const bool away = error.failure == WriteFailure::kUnavailable && !error.retry_at_once;
    if (error.fatal || away) return tl::unexpected(error);
    retry.OnFailed(error);
  }
  return retry.Take();
}

}  // namespace fencepost::consumer
