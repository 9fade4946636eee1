#include "consumer/outputs/ledger/ledger_output.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/failure_text.h"
#include "consumer/outputs/ledger/position_batch.h"
#include "consumer/outputs/ledger/refusal_search.h"
#include "consumer/outputs/ledger/table_check.h"
#include "consumer/record/text.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kDetailBytes = 1000;
// Of the records that one batch refuses, so many are asked about, column by column.
constexpr std::size_t kMostExplained = 16;

}  // namespace

LedgerOutput::LedgerOutput(std::string pipeline, std::string worker, OutputTerms terms,
                           int max_records, tl::expected<EffectShapes, RowProblem> effects)
    : pipeline_(std::move(pipeline)),
      worker_(std::move(worker)),
      terms_(std::move(terms)),
      clock_(terms_.clock ? terms_.clock : locking::ReadClocks),
      lost_commits_(terms_.keep),
      memory_(worker_, terms_),
      changes_(memory_),
      effects_(std::move(effects)),
      rows_(effects_.value_or(EffectShapes()), worker_, terms_.make_filter),
      max_records_(static_cast<std::size_t>(max_records)) {}

tl::expected<void, OutputError> LedgerOutput::Prepare() {
  Answer<void> prepared;
  if (effects_) {
    prepared = Connect();
  } else {
    prepared = tl::unexpected(SchemaError(Where(), effects_.error().what, effects_.error().hint));
  }
  if (prepared) return prepared;
  Disconnect();
  prepared.error().failure = WriteFailure::kUnavailable;  // it is no record's doing
  prepared.error().detail.clear();
  return prepared;
}

LedgerOutput::Answer<void> LedgerOutput::PrepareIfNeedBe() {
  if (Connected()) return {};
  return Prepare();
}

tl::expected<std::vector<WriteOutcome>, OutputError> LedgerOutput::Write(
    const WriteRequest& request) {
  const std::vector<WriteItem>& items = request.items;
  Outcomes outcomes(items.size());
  if (effects_ && !Connected()) {  // what selectors refuse is known without any database
    (void)rows_.Fill(items, outcomes);
    if (rows_.size() == 0) return outcomes;
    outcomes.assign(items.size(), {});
  }
  if (terms_.by_position && !PositionBatch::AllArePositions(items, outcomes)) return outcomes;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (auto filled = FillRows(request, outcomes); !filled) return tl::unexpected(filled.error());
  if (rows_.size() == 0) return outcomes;
  if (terms_.by_position) {
    if (auto same = CheckLogs(items); !same) return tl::unexpected(same.error());
  }
  auto done = request.apart ? WriteApart(outcomes, request.table_takes) : WriteRows(outcomes);
  if (!done) {
    if (done.error().failure == WriteFailure::kUnavailable) CloseAfter(done.error());
    if (done.error().failure == WriteFailure::kRefused) {
      suspects_ = SuspectsOf(done.error(), std::exchange(named_, {}));
    }
    return tl::unexpected(std::move(done.error()));
  }
  if (!terms_.by_position) {
    lost_commits_.Remember(clock_(), items, outcomes);
  } else if (auto same = changes_.OnCommitted(); !same) {
    return tl::unexpected(same.error());
  }
  return outcomes;
}

void LedgerOutput::CloseAfter(const OutputError& error) {
  if (!error.retry_at_once && error.error.code != "output_locked") Disconnect();
}

template <typename T>
LedgerOutput::Answer<T> LedgerOutput::Asked(Answer<T> answer) {
  if (answer) return answer;
  OutputError& error = answer.error();
  error.failure = WriteFailure::kUnavailable;
  error.detail.clear();
  CloseAfter(error);
  return answer;
}

LedgerTerms LedgerOutput::AskedOf(bool was_there) const {
  MissingLedger missing = was_there ? MissingLedger::kGone : MissingLedger::kCreate;
  if (terms_.look_only) missing = MissingLedger::kTell;
  return {.pipeline = pipeline_,
          .exactly_once = terms_.exactly_once,
          .by_position = terms_.by_position,
          .missing = missing};
}

LedgerOutput::Answer<void> LedgerOutput::FillRows(const WriteRequest& request, Outcomes& outcomes) {
  using enum BatchRows::Refused;
  auto filled = rows_.Fill(request.items, outcomes, Cells(), request.apart ? kApart : kTogether);
  if (filled) return {};
  OutputError error{.error = {"output_refused", filled.error(), Where(), ""},
                    .kind = WithoutNumbers(filled.error())};
  return tl::unexpected(Refusal(std::move(error), WriteFailure::kRefused, filled.error()));
}

std::vector<std::string> LedgerOutput::Ids() const {
  std::vector<std::string> ids;
  for (const std::size_t record : rows_.by_id()) ids.emplace_back(rows_.item(record).record_id);
  return ids;
}

LedgerOutput::Known LedgerOutput::KnownBy(const Entries& entries) {
  replaced_.clear();
  Known known(rows_.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i]) continue;
    const std::size_t record = rows_.by_id()[i];
    auto outcome = DuplicateOrConflict(*entries[i], rows_.item(record), rows_.source(record),
                                       rows_.rows(record) > 0);
    if (outcome.result == WriteResult::kNotWritten) {
      replaced_.emplace(rows_.item(record).record_id);
    } else {
      known[record] = std::move(outcome);
    }
  }
  return known;
}

LedgerOutput::Records LedgerOutput::Fresh(Known known, Outcomes& outcomes) const {
  Records fresh;
  Records order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [this](std::size_t record) { return rows_.index(record); });
  std::set<std::uint64_t> held;
  for (const std::size_t record : order) {
    WriteOutcome& outcome = outcomes[rows_.index(record)];
    const std::uint64_t chain = rows_.item(record).chain;
    if (held.contains(chain)) {
      outcome.result = WriteResult::kNotWritten;
    } else if (known[record]) {
      outcome = std::move(*known[record]);
      if (chain != 0 && outcome.result == WriteResult::kIdConflict) held.insert(chain);
    } else {
      Took(record, outcome);
      fresh.push_back(record);
    }
  }
  return fresh;
}

LedgerOutput::Answer<void> LedgerOutput::WriteApart(Outcomes& outcomes, bool taken) {
  Why why;
  if (auto done = ApartSteps(outcomes, why, taken); !done) {
    RollBack();
    return done;
  }
  std::size_t explained = 0;
  for (auto& [record, error] : why) {
    rows_.Select({record});
    if (++explained <= kMostExplained) Explain(error);
    outcomes[rows_.index(0)] = {.result = WriteResult::kBadRecord,
                                .detail = OneLine(error.detail, kDetailBytes),
                                .reason = DeadLetterReason::kOutput,
                                .shown = OneLine(error.error.what, kDetailBytes),
                                .may_pass = error.between != OutputError::Between::kNone};
  }
  return {};
}

LedgerOutput::Records LedgerOutput::SuspectsOf(const OutputError& refusal, Records named) const {
  return named.empty() ? rows_.Quoted(refusal.detail) : named;
}

LedgerOutput::Answer<void> LedgerOutput::ApartSteps(Outcomes& outcomes, Why& why, bool taken) {
  std::vector<std::uint64_t> chains;
  Records index;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    const std::uint64_t chain = rows_.item(record).chain;
    chains.push_back(chain == 0 && rows_.ordered() ? RefusalSearch::kInOrder : chain);
    index.push_back(rows_.index(record));
  }
  lost_.clear();
  auto known = BeginApart();
  if (!known) return tl::unexpected(known.error());
  const auto suspects = std::exchange(suspects_, std::nullopt);
  RefusalSearch search(Fresh(std::move(*known), outcomes), std::move(chains),
                       {.refused = suspects.has_value(),
                        .suspects = suspects.value_or(Records()),
                        .expected = refused_,
                        .taken = taken});
  if (auto done = SearchApart(search, why); !done) return done;
  refused_ = std::max(why.size(), (refused_ + 1) / 2);
  for (const std::size_t place : lost_) outcomes[place].lost_to_newer = true;
  for (const std::size_t record : search.left()) {
    outcomes[index[record]].result = WriteResult::kNotWritten;
  }
  Records written;
  for (std::size_t record = 0; record < index.size(); ++record) {
    const bool none = outcomes[index[record]].result == WriteResult::kNotWritten;
    if (!none && !why.contains(record)) written.push_back(record);
  }
  rows_.Select(written);
  if (terms_.by_position) changes_.Narrow(rows_);
  if (!written.empty()) return EndApart();
  RollBack();
  return {};
}

LedgerOutput::Answer<void> LedgerOutput::SearchApart(RefusalSearch& search, Why& why) {
  for (auto parts = search.Next(); !parts.empty(); parts = search.Next()) {
    auto refusals = WriteParts(parts);
    if (!refusals) return tl::unexpected(refusals.error());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      rows_.Select(parts[i]);
      auto& refusal = (*refusals)[i];
      if (!refusal) {
        search.OnTaken(i);
        continue;
      }
      search.OnRefused(i, SuspectsOf(refusal->error, std::move(refusal->named)));
      if (parts[i].size() == 1) why[parts[i].front()] = std::move(refusal->error);
    }
  }
  return {};
}

LedgerOutput::Answer<void> LedgerOutput::CheckLogs(const std::vector<WriteItem>& items) {
  changes_.Fill(rows_);
  memory_.OnAssignment(items);
  return changes_.BeforeWrite([this](const Parts& asked) { return Asked(ReadPositions(asked)); });
}

std::vector<std::size_t> LedgerOutput::Letters() const {
  std::vector<std::size_t> letters;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    const WriteItem& item = rows_.item(record);
    if (item.dead_letter != nullptr && ParsePositionId(item.record_id)) letters.push_back(record);
  }
  return letters;
}

std::vector<std::size_t> LedgerOutput::Replays() const {
  std::vector<std::size_t> replays;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    const bool letter = rows_.item(record).dead_letter != nullptr;
    if (changes_.replay(record) && !letter) replays.push_back(record);
  }
  return replays;
}

LedgerOutput::Answer<LedgerOutput::Known> LedgerOutput::KnownByPosition() {
  if (auto done = ReopenReplays(); !done) return tl::unexpected(done.error());
  Known known;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    known.push_back(changes_.DoneBefore(record, rows_.item(record)));
  }
  return known;
}

LedgerOutput::Answer<void> LedgerOutput::ReopenReplays() {
  Records replays = Replays();
  std::erase_if(replays, [&](std::size_t record) {
    return !changes_.DoneBefore(record, rows_.item(record));
  });
  if (replays.empty() || Planted("replay_finds_its_letter_done")) return {};
  std::vector<std::string> ids;
  for (const std::size_t record : replays) ids.emplace_back(rows_.item(record).record_id);
  const auto letters = LookUpIds(ids);
  if (!letters) return tl::unexpected(letters.error());
  for (std::size_t i = 0; i < replays.size(); ++i) {
    const auto& letter = (*letters)[i];
    if (letter && letter->token == locking::Token()) changes_.Reopen(replays[i]);
  }
  return {};
}

void LedgerOutput::Took(std::size_t record, WriteOutcome& outcome) const {
  outcome.took_rows = rows_.takes_rows(record);
  if (rows_.rows(record) == 0) outcome.result = WriteResult::kNoOutput;
}

OutputError LedgerOutput::Refusal(OutputError error, WriteFailure failure, std::string detail,
                                  std::optional<ColumnOf> column, std::string_view type) const {
  error.failure = failure;
  if (failure == WriteFailure::kUnavailable) return error;
  const bool frees =
      effects_ && std::ranges::any_of(*effects_, [](const EffectShape& effect) {
        return effect.shape.updates() || effect.shape.deletes() || effect.shape.statement;
      });
  if (error.between == OutputError::Between::kUnique && !frees) error.between = {};
  error.detail = std::move(detail);
  if (!column) return error;
  const TableRows rows = rows_.of(column->table);
  for (std::string* text : {&error.error.what, &error.detail}) {
    if (text->starts_with(rows.Where())) text->erase(0, rows.Where().size());
  }
  error.detail = rows.About(0, column->row, column->column, type, error.detail);
  error.error.what = rows.About(0, column->row, column->column, type, error.error.what);
  return error;
}

LedgerOutput::Answer<void> LedgerOutput::CheckLostCommits(bool same, std::string_view how) {
  const auto lost = FindLostCommits();
  if (!lost) return tl::unexpected(lost.error());
  if (*lost && !same) {
    return tl::unexpected(
        OutputError{.error = LostCommitsError(**lost, Where(), how, terms_.group), .fatal = true});
  }
  if (*lost) terms_.by_position ? memory_.Forget() : lost_commits_.Forget();
  memory_.OnComplete(clock_());
  return {};
}

LedgerOutput::Answer<std::optional<LostCommits>> LedgerOutput::FindLostCommits() {
  if (terms_.by_position) {
    const auto rows = Asked(ReadPositions(memory_.Acknowledged()));
    if (!rows) return tl::unexpected(rows.error());
    return memory_.Lost(*rows);
  }
  auto search = lost_commits_.Look(clock_());
  while (const std::vector<std::string>* ids = search.Ask()) {
    const auto found = Asked(LookUpIds(*ids));
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
  if (!terms_.by_position) return Asked(LookUpIds(ids));
  const PositionLookup asked = ByPartition(ids);
  const auto rows = Asked(ReadPositions(asked.parts));
  if (!rows) return tl::unexpected(rows.error());
  auto entries = memory_.Answer(asked, *rows);
  if (!entries) return entries;
  return Asked(WithLetters(ids, std::move(*entries)));
}

// Of those that are done, which became dead letters. Asked later: one that was replayed meanwhile
// is done all the same.
LedgerOutput::Answer<LedgerOutput::Entries> LedgerOutput::WithLetters(
    const std::vector<std::string>& ids, Entries entries) {
  std::vector<std::string> done;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!entries[i]) continue;
    done.push_back(ids[i]);
    places.push_back(i);
  }
  if (done.empty() || Planted("replay_finds_its_letter_done")) return entries;
  auto letters = LookUpIds(done);
  if (!letters) return tl::unexpected(letters.error());
  for (std::size_t i = 0; i < done.size(); ++i) {
    auto& letter = (*letters)[i];
    if (!letter || letter->token != locking::Token()) continue;
    letter->crc.reset();
    entries[places[i]] = std::move(letter);
  }
  return entries;
}

tl::expected<std::size_t, OutputError> LedgerOutput::Forget(const std::vector<std::string>& ids) {
  if (ids.empty()) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return Asked(terms_.by_position ? TakeBack(ByPartition(ids).parts) : ForgetIds(ids));
}

tl::expected<std::size_t, OutputError> LedgerOutput::ForgetOffsets(const PositionId& first,
                                                                   Offset last) {
  if (!terms_.by_position) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return Asked(TakeBack({PartOf(first, last)}));
}

tl::expected<std::size_t, OutputError> LedgerOutput::Prune(const PruneScope& scope,
                                                           std::size_t limit) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  auto pruned = PruneIds(scope, limit);
  if (!pruned && pruned.error().failure == WriteFailure::kUnavailable) CloseAfter(pruned.error());
  return pruned;
}

LedgerOutput::Answer<std::size_t> LedgerOutput::PruneIds(const PruneScope& scope,
                                                         std::size_t limit) {
  std::vector<OldRow> old;
  std::string last;
  std::size_t seen = 0;
  const auto read = VisitOldRows(scope.keep, prune_from_, prune_behind_, [&](OldRow row) {
    ++seen;
    last = row.completed_at;
    if (MayPrune(scope, row.source)) old.push_back(std::move(row));
    return old.size() < limit;
  });
  if (!read) return tl::unexpected(read.error());
  const bool more = old.size() == limit || seen == kPruneWindow;
  // All rows of a window may have one time: then it is passed over as a whole.
  prune_behind_ = old.size() < limit && more && last == prune_from_;
  prune_from_ = more ? last : "";
  if (old.empty()) return 0;
  return DeleteRows(old);
}

tl::expected<bool, OutputError> LedgerOutput::HasNewer(const WriteItem& item) {
  const bool fenced = effects_ && std::ranges::any_of(*effects_, [](const EffectShape& effect) {
                        return effect.shape.fence.has_value();
                      });
  if (!fenced) return false;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const WriteRequest request{.items = {item}, .offsets = {}};
  Outcomes outcomes(1);
  if (auto filled = FillRows(request, outcomes); !filled) return tl::unexpected(filled.error());
  return rows_.size() == 0 ? false : Asked(FindsNewer());
}

tl::expected<bool, OutputError> LedgerOutput::KnowsTopic(const std::string& topic) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return Asked(HasTopic(topic));
}

}  // namespace fencepost::consumer
