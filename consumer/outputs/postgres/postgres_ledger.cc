// What the PostgreSQL output does with its ledger apart from writing.
#include <algorithm>

#include <fmt/format.h>

#include "consumer/outputs/ledger.h"
#include "consumer/outputs/postgres/postgres_output.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "locking/base/check.h"

namespace fencepost::consumer {

tl::expected<void, OutputError> PostgresOutput::CheckLostCommits() {
  auto incarnation = LearnIncarnation(connection_, target_);
  if (!incarnation) return tl::unexpected(Fail(incarnation.error()));
  const auto asked = positions_ ? FindLostPositions() : FindLostCommits();
  if (!asked) return tl::unexpected(Fail(asked.error()));
  const std::optional<LostCommits>& lost = *asked;
  if (lost && !(incarnation_ && incarnation_->IsSame(*incarnation))) {
    const std::string& before = incarnation_ ? incarnation_->timeline : incarnation->timeline;
    const bool switched = !before.empty() && before != incarnation->timeline;
    const std::string how =
        switched ? fmt::format("timeline {} -> {}", before, incarnation->timeline) : "";
    OutputError error{.error = LostCommitsError(*lost, connection_.where(), how, terms_.group),
                      .fatal = true};
    connection_.Drop();  // the next call fails the same way
    return tl::unexpected(std::move(error));
  }
  // The server has run all the time, so it lost nothing: somebody deleted these rows (`forget`).
  if (lost) positions_ ? positions_->memory().Forget() : lost_commits_.Forget();
  if (positions_) positions_->memory().OnComplete(clock_());
  incarnation_ = std::move(*incarnation);
  return {};
}

tl::expected<std::optional<LostCommits>, PgFailure> PostgresOutput::FindLostCommits() {
  auto search = lost_commits_.Look(clock_().boot);
  while (const std::vector<std::string>* ids = search.Ask()) {
    const auto found = OfIds(LookupSql(target_), 0, ids->size(), *ids);
    if (!found) return tl::unexpected(found.error());
    bool there = false;
    for (int r = 0; r < PQntuples(found->get()); ++r) {
      const bool stands = PQgetisnull(found->get(), r, 0) == 0;
      const locking::Token token(stands ? PgNumber<std::uint64_t>(PgText(*found, r, 0)) : 0);
      there = there || (stands && search.IsOurs(static_cast<std::size_t>(r), token));
    }
    search.Answer(there);
  }
  return search.Lost();
}

tl::expected<std::optional<LostCommits>, PgFailure> PostgresOutput::FindLostPositions() {
  const auto rows = positions_->Read(positions_->memory().Acknowledged());
  if (!rows) return tl::unexpected(rows.error());
  return positions_->memory().Lost(*rows);
}

// Planned again each time, since what these look up grows: a plan made while the ledger was empty
// would read all of it for every id.
tl::expected<PgResult, PgFailure> PostgresOutput::OfIds(const std::string& sql, std::size_t begin,
                                                        std::size_t end,
                                                        const std::vector<std::string>& ids) {
  arrays_[0].Begin(kTextOid, end - begin);
  for (std::size_t i = begin; i < end; ++i) arrays_[0].Add(std::string_view(ids[i]));
  return connection_.QueryOnce(sql, {PgParam{.data = pipeline_.c_str()}, arrays_[0].Param()});
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> PostgresOutput::Lookup(
    const std::vector<std::string>& ids) {
  std::vector<std::optional<LedgerEntry>> entries(ids.size());
  if (ids.empty()) return entries;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (positions_) return LookUpPositions(ids);
  if (auto done = LookUpRange(ids, 0, ids.size(), entries); !done) {
    return tl::unexpected(done.error());
  }
  return entries;
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> PostgresOutput::LookUpPositions(
    const std::vector<std::string>& ids) {
  const PositionLookup asked = ByPartition(ids);
  const auto rows = positions_->Read(asked.parts);
  if (!rows) return tl::unexpected(Fail(rows.error()));
  return positions_->memory().Answer(asked, *rows);
}

// An id that the database's encoding does not know is in no row: the ids are all that this
// statement is given, so an error about data (class 22) is an error about one of them.
tl::expected<void, OutputError> PostgresOutput::LookUpRange(
    const std::vector<std::string>& ids, std::size_t begin, std::size_t end,
    std::vector<std::optional<LedgerEntry>>& entries) {
  const auto found = OfIds(LookupSql(target_), begin, end, ids);
  if (!found) {
    if (!found.error().sqlstate.starts_with("22")) return tl::unexpected(Fail(found.error()));
    if (end - begin == 1) return {};
    const std::size_t middle = begin + (end - begin) / 2;
    if (auto first = LookUpRange(ids, begin, middle, entries); !first) return first;
    return LookUpRange(ids, middle, end, entries);
  }
  FENCEPOST_CHECK(PQntuples(found->get()) == static_cast<int>(end - begin), "a row an id");
  for (int r = 0; r < PQntuples(found->get()); ++r) {
    if (PQgetisnull(found->get(), r, 0) != 0) continue;
    entries[begin + static_cast<std::size_t>(r)] =
        LedgerEntry{.token = locking::Token(PgNumber<std::uint64_t>(PgText(*found, r, 0))),
                    .crc = PgNumber<locking::ContentCrc>(PgText(*found, r, 1)),
                    .worker = std::string(PgText(*found, r, 2)),
                    .source = std::string(PgText(*found, r, 3)),
                    .completed_at = std::string(PgText(*found, r, 4))};
  }
  return {};
}

tl::expected<std::size_t, OutputError> PostgresOutput::Forget(const std::vector<std::string>& ids) {
  if (ids.empty()) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (positions_) return TakeBack(ByPartition(ids).parts);
  const auto gone = OfIds(ForgetSql(target_), 0, ids.size(), ids);
  if (!gone) return tl::unexpected(Fail(gone.error()));
  return PgNumber<std::size_t>(PQcmdTuples(gone->get()));
}

tl::expected<std::size_t, OutputError> PostgresOutput::ForgetOffsets(const PositionId& first,
                                                                     Offset last) {
  if (!positions_) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  return TakeBack({PartOf(first, last)});
}

tl::expected<std::size_t, OutputError> PostgresOutput::TakeBack(
    const std::vector<PositionPart>& parts) {
  const auto taken = positions_->TakeBack(parts);
  if (!taken) return tl::unexpected(Fail(taken.error()));
  return *taken;
}

tl::expected<bool, OutputError> PostgresOutput::KnowsTopic(const std::string& topic) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (positions_) {
    const auto knows = positions_->KnowsTopic(topic);
    if (!knows) return tl::unexpected(Fail(knows.error()));
    return *knows;
  }
  const auto found = connection_.Query(KnowsTopicSql(target_).c_str(), {pipeline_, topic + "/"});
  if (!found) return tl::unexpected(Fail(found.error()));
  return PQntuples(found->get()) > 0;
}

tl::expected<std::size_t, OutputError> PostgresOutput::Prune(const PruneScope& scope,
                                                             std::size_t limit) {
  if (positions_) return 0;  // a row a partition does not grow
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  BinaryArray topics, partitions, offsets, all_topics;
  topics.Begin(kTextOid, scope.committed.size());
  partitions.Begin(kInt8Oid, scope.committed.size());
  offsets.Begin(kInt8Oid, scope.committed.size());
  for (const SourceOffset& committed : scope.committed) {
    topics.Add(std::string_view(committed.where.topic));
    partitions.Add(static_cast<std::uint64_t>(committed.where.partition));
    offsets.Add(static_cast<std::uint64_t>(committed.next));
  }
  all_topics.Begin(kTextOid, scope.topics.size());
  for (const std::string& topic : scope.topics) all_topics.Add(std::string_view(topic));
  const std::string keep = std::to_string(scope.keep.count());
  const std::string most = std::to_string(limit);
  const std::string window = std::to_string(kPruneWindow);
  const auto text = [](const std::string& value) { return PgParam{.data = value.c_str()}; };
  const auto pruned = connection_.QueryOnce(
      PruneSql(target_), {text(pipeline_), text(keep), text(most), text(window), text(prune_from_),
                          topics.Param(), partitions.Param(), offsets.Param(), all_topics.Param()});
  if (!pruned) return tl::unexpected(Refused(pruned.error()));
  const auto gone = PgNumber<std::size_t>(PgText(*pruned, 0, 0));
  const auto seen = PgNumber<std::size_t>(PgText(*pruned, 0, 1));
  if (gone == limit) return gone;  // more of this window may go
  // All rows of a window may have one time: then it is passed over as a whole.
  const bool stands = PgText(*pruned, 0, 2) == prune_from_;
  prune_from_ = seen < kPruneWindow ? kPruneFirst : std::string(PgText(*pruned, 0, stands ? 3 : 2));
  return gone;
}

}  // namespace fencepost::consumer
