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
  kDate,
  kTime,  // of day
  kDateTime,
  kInterval,
};

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
  // kText, kBytes: at most so many; 0: any number.
  std::size_t characters = 0, octets = 0;
  bool padded = false;  // blanks at the end are lost; kBytes: has `octets`, no less
  std::vector<std::string> choices{};
  bool several = false;  // choices, with commas between them
  // The times.
  bool zoned = false;    // written with its offset
  bool spans = false;    // kTime: also negative, and of many hours
  bool as_text = false;  // the column is a text: a time stays as it is written, or is RFC 3339
  // Why it takes no NUL, behind "has a NUL"; empty: it does.
  std::string_view no_nul{};
};

// Whether the conversion makes something for such a column; if not, what it is for.
tl::expected<void, std::string> Takes(const CellType& to, Conversion conversion);

// The cell is what `text` holds from `at` on, and stays as it is or becomes what is sent instead.
// `type`: what it is in JSON, where its selector reads JSON.
tl::expected<void, std::string> MakeCell(const CellType& to, const Column& from,
                                         std::optional<JsonType> type, std::string& text,
                                         std::size_t at);
// Of a column of times, for MakeCell: a text, or a number that counts in `unit`.
tl::expected<void, std::string> MakeCellTime(const CellType& to, Conversion unit, std::string& text,
                                             std::size_t at);

}  // namespace fencepost::consumer
