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

PostgresOutput::Answer<void> PostgresOutput::VisitOldRows(
    std::chrono::seconds keep, const std::string& from, bool behind,
    const std::function<bool(OldRow)>& visit) {
  const auto rows = connection_.Query(
      fmt::format("SELECT record_id, source, completed_at::text FROM {} WHERE pipeline = $1"
                  " AND completed_at < now() - make_interval(secs => {}) AND completed_at {} $2"
                  " ORDER BY completed_at LIMIT {}",
                  target_.ids, keep.count(), behind ? ">" : ">=", kPruneWindow)
          .c_str(),
      {pipeline_, from.empty() ? "-infinity" : from});
  if (!rows) return tl::unexpected(Refused(rows.error()));
  for (int r = 0; r < PQntuples(rows->get()); ++r) {
    const auto text = [&](int field) { return std::string(PgText(*rows, r, field)); };
    if (!visit({text(0), text(1), text(2)})) break;
  }
  return {};
}

// One worker of a pipeline at a time; the others find nothing to do. (FOR UPDATE SKIP LOCKED would
// need the right to UPDATE the ledger, which nobody should have.)
PostgresOutput::Answer<std::size_t> PostgresOutput::DeleteRows(const std::vector<OldRow>& rows) {
  arrays_[0].Begin(kTextOid, rows.size());
  arrays_[1].Begin(kTextOid, rows.size());
  for (const OldRow& row : rows) {
    arrays_[0].Add(std::string_view(row.id));
    arrays_[1].Add(std::string_view(row.completed_at));
  }
  const auto gone = connection_.QueryOnce(ForLedger(target_, sql::postgres_prune), Params(2));
  if (!gone) return tl::unexpected(Refused(gone.error()));
  return PgNumber<std::size_t>(PQcmdTuples(gone->get()));
}

}  // namespace fencepost::consumer
