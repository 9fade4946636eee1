// What PostgreSQL's error codes mean for a batch, and what the operator can do.
#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_digest.h"
#include "consumer/outputs/postgres/postgres_connection.h"

namespace fencepost::consumer {
namespace {

bool StartsWith(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}

// A prepared statement that is not there, or is there already: between the transactions somebody
// else had the session. A pooler does that.
bool LostStatement(std::string_view state) { return state == "26000" || state == "42P05"; }

}  // namespace

std::string PgStatementName(std::string_view name, const std::string& sql) {
  return fmt::format("{}_{:016x}", name, DigestText(JsonKind::kString, sql));
}

// The classes that speak of the server or the session, whatever is written: connection 08,
// transaction state 25, authorization 28, database 3D, resources 53, object state 55 (a trigger
// raises 55000 where the records shall wait), operator 57, system 58, corruption. Everything else
// can be one record's doing, and whether it is, WriteRetry finds out.
WriteFailure FailureOf(const PgFailure& failure) {
  if (failure.kind == PgFailure::Kind::kTimeout) return WriteFailure::kClientTimeout;
  if (failure.kind != PgFailure::Kind::kServer) return WriteFailure::kUnavailable;
  const std::string_view state = failure.sqlstate;
  if (state == "55P03") return WriteFailure::kLocked;
  if (state == "57014" || state == "25P04") return WriteFailure::kTooSlow;
  const bool server =
      StartsWith(state, {"08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX001", "XX002"});
  return server || LostStatement(state) ? WriteFailure::kUnavailable : WriteFailure::kRefused;
}

bool WorthRetryingAtOnce(const PgFailure& failure) {
  return failure.kind == PgFailure::Kind::kServer &&
         StartsWith(failure.sqlstate, {"40001", "40P01"});
}

OutputError ToOutputError(const PgFailure& failure, std::string where) {
  const std::string_view state = failure.sqlstate;
  std::string code = "output_unavailable";
  std::string hint;
  if (failure.kind == PgFailure::Kind::kInterrupted) {
    code = "interrupted";
  } else if (failure.kind == PgFailure::Kind::kDsn) {
    code = "bad_dsn";
    hint =
        "write postgresql://USER@HOST:PORT/DATABASE or host=… user=… dbname=…, and the password as "
        "output.postgres.password";
  } else if (failure.kind == PgFailure::Kind::kTimeout) {
    hint = "see whether the server is frozen or overloaded; the batch is written again";
  } else if (WorthRetryingAtOnce(failure)) {
    code = "output_retry";
  } else if (StartsWith(state, {"28"})) {
    code = "output_denied";
    hint = "check the dsn's user, the password, and pg_hba.conf";
  } else if (state == "42501") {
    code = "output_denied";
    hint = "grant the role what deploy/postgres/ledger.sql shows";
  } else if (LostStatement(state)) {
    hint =
        "is there a pooler such as PgBouncer in transaction mode in between? Prepared statements "
        "and "
        "settings need a session: use pool_mode = session, or connect to PostgreSQL itself";
  } else if (StartsWith(state, {"42", "3D", "3F", "0A"})) {
    code = "output_schema";
    hint = "compare the table with output.postgres in the pipeline file";
  } else if (state == "53300") {
    hint = "raise max_connections or run fewer workers";
  } else if (StartsWith(state, {"53"})) {
    code = "output_full";
    hint = "give the server room; the batch waits";
  } else if (state == "25006") {
    code = "output_read_only";
    hint = "connect to the primary, not to a standby";
  } else if (state == "55P03") {
    code = "output_locked";
    hint =
        "another session holds a lock on these rows or the table: see pg_stat_activity and "
        "pg_locks";
  } else if (state == "57014" || state == "25P04") {
    code = "output_slow";
    hint = "it is written again in smaller parts; see what makes it slow: triggers, indexes, load";
  } else if (FailureOf(failure) == WriteFailure::kRefused) {
    code = "output_refused";
    hint = "compare the table with output.postgres in the pipeline file";
  } else if (failure.kind == PgFailure::Kind::kConnection) {
    hint =
        "check that PostgreSQL runs, the address, user and database of the dsn, and the password";
  }
  return {.error = {.code = std::move(code),
                    .what = failure.Shown(),
                    .where = std::move(where),
                    .hint = std::move(hint)},
          .retry_at_once = WorthRetryingAtOnce(failure)};
}

}  // namespace fencepost::consumer
