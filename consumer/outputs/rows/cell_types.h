// What a column takes, in words that all databases share, and what becomes of a cell in it. One set
// of rules: a value is stored as it is meant, or refused; none is rounded, cut, padded or read as
// something else. No database here; pure functions, any thread. Errors are predicates of one line
// ("is …", "has …") that hold nothing of the record.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/json/json_reader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

enum class CellKind : std::uint8_t {
  kOther,  // a text, which the database reads
  kText,
  kBytes,
  kJson,
  kWhole,
  kDecimal,
  kFloat,
  kBoolean,
  kBits,    // a text of 0 and 1
  kChoice,  // an enumeration
  kRange,   // of times
  kMap,     // of texts to texts: hstore
  kDate,
  kTime,  // of day
  kDateTime,
  kInterval,
};

// Of an interval, from the largest on.
enum class IntervalField : std::uint8_t { kYears, kMonths, kDays, kHours, kMinutes, kSeconds };

struct CellType {
  CellKind kind = CellKind::kOther;
  // kWhole.
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  bool booleans = false;  // true and false are 1 and 0
  // kFloat.
  bool single = false;   // of 32 bits
  bool also_64 = false;  // whole numbers have 64 bits all the same
  // kDecimal, kFloat: at most so many behind the point; the times: behind the second.
  std::optional<int> digits{};
  bool infinite = false;  // of numbers: NaN and Infinity are among them
  // kText, kBits, kBytes: at most so many; 0: any number.
  std::size_t characters = 0, octets = 0;
  std::size_t bits = 0;  // kBits, kWhole: it is a field of just so many
  bool padded = false;   // blanks at the end are lost; kBytes: has `octets`, no less
  bool filled = false;   // with blanks, when it is read: a text of all its characters is as it was
  std::vector<std::string> choices{};
  bool several = false;    // choices, with commas between them
  bool reads_json = true;  // kOther, kRange: an object or array may be one of its texts
  // The times.
  bool zoned = false;     // written with its offset
  bool spans = false;     // kTime: also negative, and of many hours
  bool as_text = false;   // the column is a text: a time stays as it is written, or is RFC 3339
  bool elements = false;  // `convert` is of each element of an array, which is kept as JSON
  CellKind bounds = CellKind::kDateTime;           // kRange
  IntervalField finest = IntervalField::kSeconds;  // kInterval: what it keeps
  // It takes no null, and one would become a value of the table's own: the next number, the time.
  bool replaces_null = false;
  // Why it takes no NUL, behind "has a NUL"; empty: it does.
  std::string_view no_nul{};
};

// Of a column of which nothing but its conversion is known.
inline CellKind KindMadeBy(Conversion how) {
  if (how == Conversion::kBase64 || how == Conversion::kHex) return CellKind::kBytes;
  return how == Conversion::kBool ? CellKind::kBoolean : CellKind::kText;
}

// Whether the conversion makes something for such a column; if not, what it is for.
tl::expected<void, std::string> Takes(const CellType& to, Conversion conversion);

// The cell is what `text` holds from `at` on, and stays as it is or becomes what is sent instead.
// `type`: what it is in JSON, where its selector reads JSON.
tl::expected<void, std::string> MakeCell(const CellType& to, const Column& from,
                                         std::optional<JsonType> type, std::string& text,
                                         std::size_t at);
// An array, each of whose elements is made a cell of that type, but for nulls: a JSON array, or as
// PostgreSQL writes it ({1,NULL}). The error speaks of "an element that …".
enum class ArrayForm : std::uint8_t { kJson, kPostgres };
tl::expected<void, std::string> MakeCellArray(const CellType& element, const Column& from,
                                              ArrayForm form, std::string& text, std::size_t at);

// --- of some kinds, for MakeCell ---
// Of a column of maps: a JSON object of texts, numbers and nulls becomes "a"=>"1".
tl::expected<void, std::string> MakeCellMap(std::string& text, std::size_t at);
// Of a column of times: a text, or a number that counts in `unit`.
tl::expected<void, std::string> MakeCellTime(const CellType& to, Conversion unit, std::string& text,
                                             std::size_t at);
// Whether the column keeps all that the text says.
tl::expected<void, std::string> CheckInterval(const CellType& to, std::string_view text);
// Of a range of times, or several: its bounds are cells.
tl::expected<void, std::string> MakeCellRange(const CellType& to, std::string& text,
                                              std::size_t at);

}  // namespace fencepost::consumer
