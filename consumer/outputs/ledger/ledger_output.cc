#include "consumer/outputs/ledger/ledger_output.h"

#include <utility>

#include "consumer/outputs/ledger/position_batch.h"

namespace fencepost::consumer {

LedgerOutput::LedgerOutput(std::string pipeline, std::string worker, OutputTerms terms,
                           int max_records, tl::expected<RowShape, RowProblem> shape)
    : pipeline_(std::move(pipeline)),
      worker_(std::move(worker)),
      terms_(std::move(terms)),
      clock_(terms_.clock ? terms_.clock : locking::ReadClocks),
      lost_commits_(terms_.keep),
      memory_(worker_, terms_),
      shape_(std::move(shape)),
      rows_(shape_.value_or(RowShape{}), worker_),
      max_records_(static_cast<std::size_t>(max_records)) {}

LedgerOutput::Answer<void> LedgerOutput::CheckShape(std::string_view output,
                                                    const std::string& where) const {
  if (shape_) return {};
  return tl::unexpected(
      OutputError{.error = {.code = "output_schema",
                            .what = std::string(output) + ": " + shape_.error().what,
                            .where = where,
                            .hint = shape_.error().hint}});
}

LedgerOutput::Answer<void> LedgerOutput::FillRows(const std::vector<WriteItem>& items,
                                                  Outcomes& outcomes, CellTypes* cells,
                                                  const std::string& where) {
  auto filled = rows_.Fill(items, outcomes, cells);
  if (filled) return {};
  return tl::unexpected(OutputError{
      .error = {.code = "output_refused", .what = filled.error(), .where = where, .hint = ""},
      .failure = WriteFailure::kRefused,
      .detail = filled.error()});
}

LedgerOutput::Answer<void> LedgerOutput::CheckLogs(const std::vector<WriteItem>& items,
                                                   const Parts& parts) {
  memory_.OnAssignment(items);
  return memory_.BeforeWrite(parts, [this](const Parts& asked) { return ReadPositions(asked); });
}

tl::expected<void, OutputError> LedgerOutput::Prepare() {
  auto prepared = Connect();
  if (!prepared) Disconnect();
  return prepared;
}

LedgerOutput::Answer<void> LedgerOutput::CheckLostCommits(bool same, const std::string& where,
                                                          std::string_view how) {
  const auto lost = FindLostCommits();
  if (!lost) return tl::unexpected(lost.error());
  if (*lost && !same) {
    return tl::unexpected(
        OutputError{.error = LostCommitsError(**lost, where, how, terms_.group), .fatal = true});
  }
  if (*lost) terms_.by_position ? memory_.Forget() : lost_commits_.Forget();
  memory_.OnComplete(clock_());
  return {};
}

LedgerOutput::Answer<std::optional<LostCommits>> LedgerOutput::FindLostCommits() {
  if (terms_.by_position) {
    const auto rows = ReadPositions(memory_.Acknowledged());
    if (!rows) return tl::unexpected(rows.error());
    return memory_.Lost(*rows);
  }
  auto search = lost_commits_.Look(clock_());
  while (const std::vector<std::string>* ids = search.Ask()) {
    const auto found = LookUpIds(*ids);
    if (!found) return tl::unexpected(found.error());
    std::vector<std::optional<locking::Token>> rows;
    for (const auto& entry : *found) {
      rows.push_back(entry ? std::optional(entry->token) : std::nullopt);
    }
    search.Answer(rows);
  }
  return search.Lost();
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> LedgerOutput::Lookup(
    const std::vector<std::string>& ids) {
  if (ids.empty()) return Entries();
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (!terms_.by_position) return LookUpIds(ids);
  const PositionLookup asked = ByPartition(ids);
  const auto rows = ReadPositions(asked.parts);
  if (!rows) return tl::unexpected(rows.error());
  return memory_.Answer(asked, *rows);
}

tl::expected<std::size_t, OutputError> LedgerOutput::Forget(const std::vector<std::string>& ids) {
  if (ids.empty()) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return terms_.by_position ? TakeBack(ByPartition(ids).parts) : ForgetIds(ids);
}

tl::expected<std::size_t, OutputError> LedgerOutput::ForgetOffsets(const PositionId& first,
                                                                   Offset last) {
  if (!terms_.by_position) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return TakeBack({PartOf(first, last)});
}

tl::expected<std::size_t, OutputError> LedgerOutput::Prune(const PruneScope& scope,
                                                           std::size_t limit) {
  if (terms_.by_position) return 0;  // a row a partition does not grow
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return PruneIds(scope, limit);
}

}  // namespace fencepost::consumer
