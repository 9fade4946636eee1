// What the error codes of MySQL and MariaDB mean for a batch, and what the operator can do.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/failure_text.h"
#include "consumer/outputs/mysql/mysql_connection.h"

namespace fencepost::consumer {
namespace {

// They speak of the server or the session, whatever is written: connections and logins, read-only,
// shutdown, disk, memory, limits, storage that failed.
constexpr std::array<unsigned, 39> kOfServer{
    1021, 1026, 1030, 1034, 1035, 1037, 1038, 1040, 1041, 1043, 1044, 1045, 1049,
    1053, 1077, 1078, 1114, 1129, 1130, 1135, 1142, 1143, 1158, 1159, 1160, 1161,
    1180, 1194, 1195, 1203, 1226, 1290, 1317, 1698, 1792, 1836, 1927, 3032, 3159};
constexpr const char* kCompare = "compare the table with output.mysql in the pipeline file";

// What the operator is told of a code.
struct Meaning {
  std::array<unsigned, 7> codes;
  const char* code;
  const char* hint;
};
constexpr std::array<Meaning, 9> kMeanings{{
    {{1044, 1045, 1049, 1129, 1130, 1698, 3159},
     "output_denied",
     "check user, password and database of output.mysql, and the "
     "account's host"},
    {{1142, 1143}, "output_denied", "grant the account what deploy/mysql/grants.sql lists"},
    {{1290, 1792, 1836}, "output_read_only", "connect to the primary, not to a replica"},
    {{1021, 1026, 1114}, "output_full", "give the server room; the batch waits"},
    {{1040, 1203, 1226},
     "output_unavailable",
     "raise the limit of connections or run fewer workers"},
    {{1206}, "output_full", "raise innodb_buffer_pool_size: there is no room for more row locks"},
    {{1205, 3572},
     "output_locked",
     "another session holds a lock on these rows or the table: see SHOW ENGINE INNODB STATUS"},
    {{1969, 3024},
     "output_slow",
     "it is written again in smaller parts; see what makes it slow: triggers, indexes, load"},
    {{1054, 1064, 1136, 1146, 1364}, "output_schema", kCompare},
}};

template <std::size_t N>
bool Among(unsigned code, const std::array<unsigned, N>& codes) {
  return code != 0 && std::ranges::find(codes, code) != codes.end();
}

bool TimedOut(unsigned code) { return code == 1969 || code == 3024; }
// SIGNAL of a trigger, whose text is the trigger's own and may quote the row.
bool BySignal(const MysqlFailure& failure) {
  return failure.code == 1643 || failure.code == 1644 || failure.sqlstate == "45000" ||
         failure.sqlstate.starts_with("55");
}
// By 1206, no room for more row locks, the transaction is gone; smaller ones may have it.
bool Locked(unsigned code) { return code == 1205 || code == 1206 || code == 3572; }

// What the server says by these codes, as a rule.
constexpr std::array<std::pair<unsigned, std::string_view>, 29> kWords{
    {{1021, "no room on the server's disk"},
     {1048, "NULL in a column that takes none"},
     {1054, "the table has no such column"},
     {1062, "a duplicate under a unique index"},
     {1114, "the table is full"},
     {1142, "the account lacks a right on a table"},
     {1143, "the account lacks a right on a column"},
     {1146, "no such table"},
     {1153, "more than max_allowed_packet"},
     {1205, "a lock was waited for too long"},
     {1206, "no room for more row locks"},
     {1213, "a deadlock"},
     {1264, "a number out of the column's range"},
     {1265, "a value that the column's type does not take"},
     {1290, "the server is read-only"},
     {1292, "a value that the column's type does not take"},
     {1364, "a column without a value or a default"},
     {1366, "a value that the column's type does not take"},
     {1406, "too long for the column"},
     {1452, "a foreign key without its row"},
     {1792, "the transaction is read-only"},
     {1836, "the server is read-only"},
     {1969, "the statement took too long"},
     {2006, "the connection is gone"},
     {2013, "the connection broke"},
     {3024, "the statement took too long"},
     {3140, "not JSON"},
     {3819, "against a check constraint"},
     {4025, "against a check constraint"}}};

// 1242: MysqlEffects::OnDuplicateKey.
constexpr std::array<unsigned, 3> kUnique{1062, 1242, 1586};
constexpr std::array<unsigned, 4> kForeignKey{1216, 1217, 1451, 1452};
OutputError::Between BetweenRows(unsigned code) {
  using Between = OutputError::Between;
  return Among(code, kUnique)       ? Between::kUnique
         : Among(code, kForeignKey) ? Between::kForeignKey
                                    : Between::kNone;
}

std::string InWords(const MysqlFailure& failure) {
  const auto* const words =
      std::ranges::find(kWords, failure.code, &std::pair<unsigned, std::string_view>::first);
  return fmt::format("{} (error {}, SQLSTATE {})",
                     words == kWords.end() ? "the write failed" : words->second, failure.code,
                     failure.sqlstate);
}

}  // namespace

std::string MysqlFailure::Shown() const {
  if (kind == Kind::kServer && code == 1242) {  // MysqlEffects::OnDuplicateKey
    return "a row of another key has the same value under another unique index";
  }
  if (kind == Kind::kServer && BySignal(*this)) {
    return "a trigger refused the row (SQLSTATE " + sqlstate + ")";
  }
  if (of_write) return InWords(*this);
  return kind == Kind::kServer && FailureOf(*this) == WriteFailure::kRefused ? BeforeQuotes(text)
                                                                             : text;
}

// A trigger raises SQLSTATE 55000 where the records shall wait, as in PostgreSQL. Everything that
// is not named can be one record's doing, and whether it is, WriteRetry finds out.
WriteFailure FailureOf(const MysqlFailure& failure) {
  if (failure.kind == MysqlFailure::Kind::kTimeout) return WriteFailure::kClientTimeout;
  if (failure.kind != MysqlFailure::Kind::kServer) return WriteFailure::kUnavailable;
  if (Locked(failure.code)) return WriteFailure::kLocked;
  if (TimedOut(failure.code)) return WriteFailure::kTooSlow;
  const bool server = Among(failure.code, kOfServer) || WorthRetryingAtOnce(failure) ||
                      failure.sqlstate.starts_with("08") || failure.sqlstate.starts_with("55");
  return server ? WriteFailure::kUnavailable : WriteFailure::kRefused;
}

// A deadlock, or a row that changed since it was read (MariaDB's innodb_snapshot_isolation).
bool WorthRetryingAtOnce(const MysqlFailure& failure) {
  return failure.kind == MysqlFailure::Kind::kServer &&
         (failure.code == 1213 || failure.code == 1020);
}

OutputError ToOutputError(const MysqlFailure& failure, std::string where) {
  const auto* const meaning = std::ranges::find_if(
      kMeanings, [&](const Meaning& one) { return Among(failure.code, one.codes); });
  std::string code = "output_unavailable";
  std::string hint;
  if (failure.kind == MysqlFailure::Kind::kInterrupted) {
    code = "interrupted";
  } else if (failure.kind == MysqlFailure::Kind::kTimeout) {
    hint = "see whether the server is frozen or overloaded; the batch is written again";
  } else if (failure.kind == MysqlFailure::Kind::kConnection) {
    hint = "check that the server runs and is reachable; the batch is written again";
  } else if (WorthRetryingAtOnce(failure)) {
    code = "output_retry";
  } else if (meaning != kMeanings.end()) {
    code = meaning->code;
    hint = meaning->hint;
  } else if (FailureOf(failure) == WriteFailure::kRefused) {
    code = "output_refused";
    hint = kCompare;
  }
  return {.error = {.code = std::move(code),
                    .what = failure.Shown(),
                    .where = std::move(where),
                    .hint = std::move(hint)},
          .retry_at_once = WorthRetryingAtOnce(failure),
          .kind = fmt::format("{} {}", failure.code, failure.sqlstate),
          .between = BetweenRows(failure.code)};
}

}  // namespace fencepost::consumer
