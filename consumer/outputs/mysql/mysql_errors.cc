// What the error codes of MySQL and MariaDB mean for a batch, and what the operator can do.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "consumer/outputs/failure_text.h"
#include "consumer/outputs/mysql/mysql_connection.h"

namespace fencepost::consumer {
namespace {

// They speak of the server or the session, whatever is written: connections and logins, read-only,
// shutdown, disk, memory, limits, storage that failed.
constexpr std::array<unsigned, 37> kOfServer{
    1021, 1026, 1030, 1034, 1035, 1037, 1038, 1040, 1041, 1043, 1044, 1045, 1049,
    1053, 1077, 1078, 1114, 1129, 1130, 1135, 1158, 1159, 1160, 1161, 1180, 1194,
    1195, 1203, 1226, 1290, 1317, 1698, 1792, 1836, 1927, 3032, 3159};
constexpr std::array<unsigned, 7> kLogin{1044, 1045, 1049, 1129, 1130, 1698, 3159};
constexpr std::array<unsigned, 3> kReadOnly{1290, 1792, 1836};
constexpr std::array<unsigned, 3> kFull{1021, 1026, 1114};
constexpr std::array<unsigned, 5> kSchema{1054, 1136, 1146, 1064, 1364};

template <std::size_t N>
bool Among(unsigned code, const std::array<unsigned, N>& codes) {
  return std::ranges::find(codes, code) != codes.end();
}

bool TimedOut(unsigned code) { return code == 1969 || code == 3024; }
// SIGNAL of a trigger, whose text is the trigger's own and may quote the row.
bool BySignal(const MysqlFailure& failure) {
  return failure.code == 1643 || failure.code == 1644 || failure.sqlstate == "45000" ||
         failure.sqlstate.starts_with("55");
}
bool Locked(unsigned code) { return code == 1205 || code == 3572; }

}  // namespace

std::string MysqlFailure::Shown() const {
  if (kind == Kind::kServer && code == 1242) {  // MysqlEffects::OnDuplicateKey
    return "a row of another key has the same value under another unique index";
  }
  if (kind == Kind::kServer && BySignal(*this)) {
    return "a trigger refused the row (SQLSTATE " + sqlstate + ")";
  }
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
  } else if (Among(failure.code, kLogin)) {
    code = "output_denied";
    hint = "check user, password and database of output.mysql, and the account's host";
  } else if (failure.code == 1142 || failure.code == 1143) {
    code = "output_denied";
    hint = "grant the account what deploy/mysql/ledger.sql shows";
  } else if (Among(failure.code, kReadOnly)) {
    code = "output_read_only";
    hint = "connect to the primary, not to a replica";
  } else if (Among(failure.code, kFull)) {
    code = "output_full";
    hint = "give the server room; the batch waits";
  } else if (failure.code == 1040 || failure.code == 1203 || failure.code == 1226) {
    hint = "raise the limit of connections or run fewer workers";
  } else if (Locked(failure.code)) {
    code = "output_locked";
    hint = "another session holds a lock on these rows or the table: see SHOW ENGINE INNODB STATUS";
  } else if (TimedOut(failure.code)) {
    code = "output_slow";
    hint = "it is written again in smaller parts; see what makes it slow: triggers, indexes, load";
  } else if (Among(failure.code, kSchema)) {
    code = "output_schema";
    hint = "compare the table with output.mysql in the pipeline file";
  } else if (FailureOf(failure) == WriteFailure::kRefused) {
    code = "output_refused";
    hint = "compare the table with output.mysql in the pipeline file";
  }
  return {.error = {.code = std::move(code),
                    .what = failure.Shown(),
                    .where = std::move(where),
                    .hint = std::move(hint)},
          .retry_at_once = WorthRetryingAtOnce(failure)};
}

}  // namespace fencepost::consumer
