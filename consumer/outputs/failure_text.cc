#include "consumer/outputs/failure_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

constexpr std::array<std::string_view, 14> kQuotes{"\"", "'", "`", "0x", "«",  "»",  "„",
                                                   "“",  "”", "‘", "’",  "「", "『", "‹"};

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
  // No class of kOfServer looks at data, so their words are names alone.
  constexpr std::array<std::string_view, 9> kOfServer{"08", "25", "28", "3D", "40",
                                                      "53", "55", "57", "58"};
  constexpr std::array<std::string_view, 7> kOfData{"0A", "21", "22", "23", "42", "44", "54"};
  const std::string_view state = fields.sqlstate;
  const auto in = [&](const auto& classes) {
    return std::ranges::any_of(classes, [&](std::string_view c) { return state.starts_with(c); });
  };
  if (OwnWords(fields.context)) {
    if (in(kOfServer)) return fields.message;
    std::string beginning = in(kOfData) ? BeforeQuotes(fields.message) : "";
    if (!beginning.empty()) return beginning.append(UsualCause(state));
  }
  const std::string_view function = FunctionIn(fields.context);
  if (function.empty()) return std::string(ConditionName(state));
  return fmt::format("{} in function {}", ConditionName(state), function);
}

}  // namespace

std::string_view UsualCause(std::string_view sqlstate) {
  return sqlstate == "22008" ? " (of a number since 1970, convert says the unit)" : "";
}

std::string ErrorText(std::string_view text) { return OneLine(text, kMaxErrorText); }

std::string BeforeQuotes(std::string_view message) {
  std::size_t end = std::string_view::npos;
  for (const std::string_view quote : kQuotes) end = std::min(end, message.find(quote));
  if (end == std::string_view::npos) return ErrorText(message);
  std::string_view beginning = message.substr(0, end);
  while (!beginning.empty() && (beginning.back() == ' ' || beginning.back() == '(')) {
    beginning.remove_suffix(1);
  }
  if (beginning.empty()) return "";
  return ErrorText(fmt::format("{} …", beginning));
}

std::string WithoutRecord(const PgErrorFields& fields) {
  std::string shown = fmt::format("{} (SQLSTATE {}", What(fields), fields.sqlstate);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) shown += fmt::format(", {} {}", name, value);
  };
  add("table", fields.schema.empty() ? fields.table : fields.schema + "." + fields.table);
  add("column", fields.column);
  add("constraint", fields.constraint);
  add("type", fields.datatype);
  return ErrorText(shown + ")");
}

}  // namespace fencepost::consumer
