// A write in parts behind savepoints, which finds the records that are refused (RefusalSearch).
#include <algorithm>
#include <iterator>
#include <utility>

#include "consumer/outputs/postgres/postgres_output.h"

namespace fencepost::consumer {

// The transaction of rows that were found writes to the log, so that its COMMIT waits for the
// standbys that their own may still wait for.
PostgresOutput::Answer<PostgresOutput::Known> PostgresOutput::BeginApart() {
  if (terms_.by_position) return LockPositions();
  std::vector<PgConnection::Step> steps;
  auto known = LookUpKnown();
  if (!known) return known;
  if (std::ranges::any_of(*known, [](const auto& one) { return one.has_value(); })) {
    steps.push_back({logged_statement_.c_str(), {}});
  }
  if (auto begun = connection_.BeginApart(steps); !begun) {
    return tl::unexpected(Refused(begun.error()));
  }
  return known;
}

PostgresOutput::Answer<PostgresOutput::Refusals> PostgresOutput::WriteParts(
    const std::vector<Records>& parts) {
  const auto answers = connection_.SendParts(parts.size(), [&](std::size_t part) {
    rows_.Select(parts[part]);
    return terms_.by_position ? std::vector{FilledPositionWrite(Ranges::kNone)} : NewSteps();
  });
  if (!answers) return tl::unexpected(Refused(answers.error()));
  Refusals refusals;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    auto& refusal = refusals.emplace_back();
    const auto& answer = (*answers)[part];
    if (answer) {
      rows_.Select(parts[part]);
      if (shape_->fence) std::ranges::copy(LostOf(*answer), std::back_inserter(lost_));
      continue;
    }
    const PgFailure& failure = answer.error();
    OutputError error = Refusal(ToOutputError(failure, Where()), FailureOf(failure), failure.text);
    if (IsOfLedger(failure)) return RowIsGone(failure.table);
    if (error.failure != WriteFailure::kRefused || error.retry_at_once) {
      return tl::unexpected(std::move(error));
    }
    refusal = {.error = std::move(error)};
  }
  return refusals;
}

PostgresOutput::Answer<void> PostgresOutput::EndApart() {
  std::vector<PgConnection::Step> steps;
  if (terms_.by_position) {
    AddReplays(steps);
    AddLetters(steps);
    rows_.Select({});
    steps.push_back(FilledPositionWrite(Ranges::kDone));
  }
  const auto done = connection_.CommitApart(steps);
  if (!done) return tl::unexpected(Refused(done.error()));
  return {};
}

void PostgresOutput::RollBack() {
  if (connection_.open()) (void)connection_.RollBack();
}

}  // namespace fencepost::consumer
