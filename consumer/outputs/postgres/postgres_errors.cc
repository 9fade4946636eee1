// What PostgreSQL's error codes mean for a batch, and what the operator can do.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_digest.h"
#include "consumer/outputs/failure_text.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/postgres/postgres_connection.h"
#include "consumer/outputs/postgres/postgres_sql.h"

namespace fencepost::consumer {
namespace {

bool StartsWith(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view p) { return !p.empty() && text.starts_with(p); });
}

constexpr std::array<std::string_view, 2> kRetry{"40001", "40P01"};
constexpr std::array<std::string_view, 2> kTooSlow{"57014", "25P04"};
constexpr std::array<std::string_view, 11> kOfServer{"08", "25", "28", "3D",    "40",   "53",
                                                     "55", "57", "58", "XX001", "XX002"};
constexpr std::size_t kInWords = 9;  // of them, the first
constexpr const char* kCompare = "compare the table with output.postgres in the pipeline file";

// What the operator is told of an SQLSTATE, by how it begins. The first that fits.
struct Meaning {
  std::array<std::string_view, 4> states;
  const char* code;
  const char* hint;
};
constexpr std::array<Meaning, 9> kMeanings{{
    {{"28"}, "output_denied", "check the dsn's user, the password, and pg_hba.conf"},
    {{"42501"}, "output_denied", "grant the role what deploy/postgres/grants.sql lists"},
    {{"26000", "42P05"},
     "output_unavailable",
     "is there a pooler such as PgBouncer in transaction mode in between? Prepared statements and "
     "settings need a session: use pool_mode = session, or connect to PostgreSQL itself"},
    {{"42", "3D", "3F", "0A"}, "output_schema", kCompare},
    {{"53300"}, "output_unavailable", "raise max_connections or run fewer workers"},
    {{"53"}, "output_full", "give the server room; the batch waits"},
    {{"25006"}, "output_read_only", "connect to the primary, not to a standby"},
    {{"55P03"},
     "output_locked",
     "another session holds a lock on these rows or the table: see pg_stat_activity and pg_locks"},
    {{"57014", "25P04"},
     "output_slow",
     "it is written again in smaller parts; see what makes it slow: triggers, indexes, load"},
}};

// A prepared statement that is not there, or is there already: between the transactions somebody
// else had the session. A pooler does that.
bool LostStatement(std::string_view state) { return state == "26000" || state == "42P05"; }

// As appendix A of PostgreSQL's manual names them: those that data can cause, and those that a
// function is likely to raise on purpose.
constexpr std::array<std::pair<std::string_view, std::string_view>, 34> kConditions{
    {{"21000", "cardinality_violation"},
     {"22001", "string_data_right_truncation"},
     {"22003", "numeric_value_out_of_range"},
     {"22004", "null_value_not_allowed"},
     {"22007", "invalid_datetime_format"},
     {"22008", "datetime_field_overflow"},
     {"22012", "division_by_zero"},
     {"22021", "character_not_in_repertoire"},
     {"22023", "invalid_parameter_value"},
     {"22032", "invalid_json_text"},
     {"22P02", "invalid_text_representation"},
     {"22P03", "invalid_binary_representation"},
     {"22P05", "untranslatable_character"},
     {"23000", "integrity_constraint_violation"},
     {"23502", "not_null_violation"},
     {"23503", "foreign_key_violation"},
     {"23505", "unique_violation"},
     {"23514", "check_violation"},
     {"23P01", "exclusion_violation"},
     {"40001", "serialization_failure"},
     {"40P01", "deadlock_detected"},
     {"42501", "insufficient_privilege"},
     {"42601", "syntax_error"},
     {"42704", "undefined_object"},
     {"42883", "undefined_function"},
     {"42P01", "undefined_table"},
     {"44000", "with_check_option_violation"},
     {"55000", "object_not_in_prerequisite_state"},
     {"55P03", "lock_not_available"},
     {"57014", "query_canceled"},
     {"P0001", "raise_exception"},
     {"P0002", "no_data_found"},
     {"P0003", "too_many_rows"},
     {"XX000", "internal_error"}}};

std::string_view ConditionName(std::string_view state) {
  const auto* found =
      std::ranges::find(kConditions, state, &std::pair<std::string_view, std::string_view>::first);
  return found == kConditions.end() ? "an error" : found->second;
}

// "PL/pgSQL function check_amount() line 3 at RAISE" → "check_amount()".
std::string_view FunctionIn(std::string_view context) {
  constexpr std::string_view kBefore = "PL/pgSQL function ";
  if (!context.starts_with(kBefore)) return {};
  context.remove_prefix(kBefore.size());
  const auto end = std::min(context.find(" line "), context.find('\n'));
  return end == std::string_view::npos ? std::string_view() : context.substr(0, end);
}

// In the words of the server itself: without a context no function or extension had a part in it.
// Those that follow speak of places in tables, not of what is there.
bool OwnWords(std::string_view context) { return context.empty() || context.starts_with("while "); }

std::string What(const PgErrorFields& fields) {
  constexpr std::array<std::string_view, 7> kOfData{"0A", "21", "22", "23", "42", "44", "54"};
  const std::string_view state = fields.sqlstate;
  if (OwnWords(fields.context)) {
    // None of these looks at data, so their words are names alone.
    if (StartsWith(state, std::span(kOfServer).first<kInWords>())) return fields.message;
    std::string beginning = StartsWith(state, kOfData) ? BeforeQuotes(fields.message) : "";
    if (!beginning.empty()) return beginning;
  }
  const std::string_view function = FunctionIn(fields.context);
  if (function.empty()) return std::string(ConditionName(state));
  return fmt::format("{} in function {}", ConditionName(state), function);
}

// 23001: of a row that is deleted, whose others may go yet.
OutputError::Between BetweenRows(std::string_view state) {
  using enum OutputError::Between;
  if (state == "23503" || state == "23001") return kForeignKey;
  return state == "23505" || state == "23P01" ? kUnique : kNone;
}

}  // namespace

std::string WithoutRecord(const PgErrorFields& fields) {
  std::string shown = fmt::format("{} (SQLSTATE {}", What(fields), fields.sqlstate);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) shown += fmt::format(", {} {}", name, value);
  };
  // A function's RAISE names what it likes; a statement within a function is the server's again.
  if (!OwnWords(fields.context) && !fields.context.starts_with("SQL statement ")) {
    return ErrorText(shown + ")");
  }
  add("table", fields.schema.empty() ? fields.table : fields.schema + "." + fields.table);
  add("column", fields.column);
  add("constraint", fields.constraint);
  add("type", fields.datatype);
  return ErrorText(shown + ")");
}

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
  if (StartsWith(state, kTooSlow)) return WriteFailure::kTooSlow;
  return StartsWith(state, kOfServer) || LostStatement(state) ? WriteFailure::kUnavailable
                                                              : WriteFailure::kRefused;
}

bool WorthRetryingAtOnce(const PgFailure& failure) {
  return failure.kind == PgFailure::Kind::kServer && StartsWith(failure.sqlstate, kRetry);
}

OutputError ToOutputError(const PgFailure& failure, std::string where) {
  const auto* const meaning = std::ranges::find_if(
      kMeanings, [&](const Meaning& one) { return StartsWith(failure.sqlstate, one.states); });
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
  } else if (meaning != kMeanings.end()) {
    code = meaning->code;
    hint = meaning->hint;
  } else if (FailureOf(failure) == WriteFailure::kRefused) {
    code = "output_refused";
    hint = kCompare;
  } else if (failure.kind == PgFailure::Kind::kConnection) {
    hint =
        "check that PostgreSQL runs, the address, user and database of the dsn, and the password";
  }
  return {.error = {.code = std::move(code),
                    .what = failure.Shown(),
                    .where = std::move(where),
                    .hint = std::move(hint)},
          .retry_at_once = WorthRetryingAtOnce(failure),
          .kind = fmt::format("{} {}", failure.sqlstate, failure.table),
          .between = BetweenRows(failure.sqlstate)};
}

bool IsOfLedger(const PgFailure& failure) {
  return failure.table == kLedgerTable ||
         (failure.sqlstate == "22P02" && failure.text.find(LedgerMark()) != std::string::npos);
}

std::optional<QuotedKey> KeyIn(const OutputError& refusal) {
  if (!refusal.kind.starts_with("23")) return std::nullopt;
  const std::string_view text = refusal.detail;
  const std::size_t equals = text.find(")=(");
  const std::size_t open = text.rfind('(', equals);
  if (equals == std::string_view::npos || open == std::string_view::npos) return std::nullopt;
  QuotedKey key{.columns = {}, .values = text.substr(equals + 3)};
  for (std::string_view names = text.substr(open + 1, equals - open - 1); !names.empty();) {
    const std::size_t end = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, end);
    names.remove_prefix(std::min(end + 2, names.size()));
    if (name.size() > 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
    key.columns.emplace_back(name);
  }
  return key;
}

bool Quotes(const OutputError& refusal, std::string_view cell) {
  return refusal.detail.find(fmt::format("\"{}\"", cell)) != std::string::npos;
}

}  // namespace fencepost::consumer
