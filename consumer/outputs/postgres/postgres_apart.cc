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
  struct Sent {
    Tables written;
    std::size_t before = 0;  // steps
  };
  std::vector<Sent> sent(parts.size());
  const auto answers = connection_.SendParts(parts.size(), [&](std::size_t part) {
    rows_.Select(parts[part]);
    Steps steps = terms_.by_position ? FilledPositionWrite(Ranges::kNone) : NewSteps();
    sent[part] = {written_, steps.size() - written_.size() - (several() ? 1 : 0)};
    return steps;
  });
  if (!answers) return tl::unexpected(Refused(answers.error()));
  Refusals refusals;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    auto& refusal = refusals.emplace_back();
    const auto& answer = (*answers)[part];
    if (answer) {
      rows_.Select(parts[part]);
      std::ranges::copy(LostOf(*answer, sent[part].written), std::back_inserter(lost_));
      continue;
    }
    const PgFailure& failure = answer.error();
    OutputError error = Refusal(ToOutputError(failure, Where()), FailureOf(failure), failure.text);
    if (IsOfLedger(failure)) return RowIsGone(failure.table);
    if (error.failure != WriteFailure::kRefused || error.retry_at_once) {
      return tl::unexpected(std::move(error));
    }
    rows_.Select(parts[part]);
    const std::size_t before = sent[part].before + (part == 0 ? 0 : 1);  // ROLLBACK TO
    if (failure.answered >= before) {
      NameEffect(error, failure.answered - before, sent[part].written);
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
    std::ranges::move(FilledPositionWrite(Ranges::kDone), std::back_inserter(steps));
  }
  const auto done = connection_.CommitApart(steps);
  if (!done) return tl::unexpected(Refused(done.error()));
  return {};
}

void PostgresOutput::RollBack() {
  if (connection_.open()) (void)connection_.RollBack();
}

}  // namespace fencepost::consumer
