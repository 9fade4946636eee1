// What the PostgreSQL output does with its ledger apart from writing.
#include <algorithm>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/postgres/postgres_output.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "locking/base/check.h"

namespace fencepost::consumer {

PostgresOutput::Answer<void> PostgresOutput::CheckIncarnation() {
  auto incarnation = LearnIncarnation(connection_, target_);
  if (!incarnation) return Failed(incarnation.error());
  const bool same = incarnation_ && incarnation_->IsSame(*incarnation);
  const std::string& before = incarnation_ ? incarnation_->timeline : incarnation->timeline;
  const bool switched = !before.empty() && before != incarnation->timeline;
  const std::string how =
      switched ? fmt::format("timeline {} -> {}", before, incarnation->timeline) : "";
  auto complete = CheckLostCommits(same, how);
  if (complete) incarnation_ = std::move(*incarnation);
  return complete;
}

// Planned again each time, since what these look up grows: a plan made while the ledger was empty
// would read all of it for every id.
tl::expected<PgResult, PgFailure> PostgresOutput::OfIds(const char* statement,
                                                        const std::vector<std::string>& ids) {
  arrays_[0].Begin(kTextOid, ids.size());
  for (const std::string& id : ids) arrays_[0].Add(std::string_view(id));
  return connection_.QueryOnce(ForLedger(target_, statement), Params(1));
}

// An id that the database's encoding does not know is in no row: the ids are all that this
// statement is given, so an error about data (class 22) is an error about one of them.
PostgresOutput::Answer<PostgresOutput::Entries> PostgresOutput::LookUpIds(
    const std::vector<std::string>& ids) {
  const auto found = OfIds(sql::postgres_lookup, ids);
  if (!found) {
    if (!found.error().sqlstate.starts_with("22")) return Failed(found.error());
    if (ids.size() == 1) return Entries(1);
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
    auto first = LookUpIds({ids.begin(), middle});
    if (!first) return first;
    const auto rest = LookUpIds({middle, ids.end()});
    if (!rest) return rest;
    first->insert(first->end(), rest->begin(), rest->end());
    return first;
  }
  FENCEPOST_CHECK(PQntuples(found->get()) == static_cast<int>(ids.size()), "a row an id");
  Entries entries(ids.size());
  for (int r = 0; r < PQntuples(found->get()); ++r) {
    if (PQgetisnull(found->get(), r, 0) != 0) continue;
    entries[static_cast<std::size_t>(r)] =
        LedgerEntry{.token = locking::Token(PgNumber<std::uint64_t>(PgText(*found, r, 0))),
                    .crc = PgNumber<locking::ContentCrc>(PgText(*found, r, 1)),
                    .worker = std::string(PgText(*found, r, 2)),
                    .source = std::string(PgText(*found, r, 3)),
                    .completed_at = std::string(PgText(*found, r, 4))};
  }
  return entries;
}

PostgresOutput::Answer<std::size_t> PostgresOutput::ForgetIds(const std::vector<std::string>& ids) {
  const auto gone = OfIds(sql::postgres_forget, ids);
  if (!gone) return Failed(gone.error());
  return PgNumber<std::size_t>(PQcmdTuples(gone->get()));
}

PostgresOutput::Answer<bool> PostgresOutput::HasTopic(const std::string& topic) {
  const auto found = connection_.Query(KnowsTopicSql(target_).c_str(), {pipeline_, topic});
  if (!found) return Failed(found.error());
  return PQntuples(found->get()) > 0;
}

PostgresOutput::Answer<std::size_t> PostgresOutput::PruneIds(const PruneScope& scope,
                                                             std::size_t limit) {
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
      ForLedger(target_, sql::postgres_prune),
      {text(pipeline_), text(keep), text(most), text(window), text(prune_from_), topics.Param(),
       partitions.Param(), offsets.Param(), all_topics.Param()});
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
