// What PostgreSQL's error codes mean for a batch, and what the operator can do.
#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "consumer/outputs/postgres_connection.h"

namespace fencepost::consumer {
namespace {

bool StartsWith(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}

// Standard SQL leaves the classes that begin with 5 to 9 or I to Z to implementations; what
// PostgreSQL does not use of them is raised on purpose, by a trigger or a function of the user's.
bool RaisedByUser(std::string_view state) {
  if (state.size() != 5) return false;
  const char first = state.front();
  const bool free = (first >= '5' && first <= '9') || (first >= 'I' && first <= 'Z');
  return free && !StartsWith(state, {"53", "54", "55", "57", "58", "72", "P0", "XX"});
}

}  // namespace

bool RefusesRecord(const PgFailure& failure) {
  // 22 data, 23 constraints, 44 a view's check option, P0 PL/pgSQL's own (RAISE EXCEPTION, no data
  // found, ASSERT, …), 54000 an index or table row too big, 54001 nested too deep, 21000 two rows
  // of one key in a statement (or a subquery's second row).
  return failure.kind == PgFailure::Kind::kServer &&
         (RaisedByUser(failure.sqlstate) ||
          StartsWith(failure.sqlstate, {"21000", "22", "23", "44000", "P0", "54000", "54001"}));
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
        "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters percent-encoded, "
        "or host=… user=… dbname=…";
  } else if (failure.kind == PgFailure::Kind::kTimeout) {
    hint = "see whether the server is frozen or overloaded; the batch is written again";
  } else if (WorthRetryingAtOnce(failure)) {
    code = "output_retry";
  } else if (StartsWith(state, {"28"})) {
    code = "output_denied";
    hint = "check user and password in the dsn, and pg_hba.conf";
  } else if (state == "42501") {
    code = "output_denied";
    hint = "grant the role what deploy/postgres/ledger.sql shows";
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
  } else if (failure.kind == PgFailure::Kind::kConnection) {
    hint = "check that PostgreSQL runs and is reachable; the batch is written again";
  }
  return {.error = {.code = std::move(code),
                    .what = failure.text,
                    .where = std::move(where),
                    .hint = std::move(hint)},
          .retry_at_once = WorthRetryingAtOnce(failure)};
}

}  // namespace fencepost::consumer
