// What a column's declared unit or encoding makes of a selector's text, and numbers as a database's
// types take them. No database here; pure functions, any thread. Errors are predicates of one line
// ("is …") that hold nothing of a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {

// A JSON number as digits × 10^exponent, no zero at either end; no digits: zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};
// nullopt: an exponent that nobody counts with.
std::optional<Decimal> DecimalOf(std::string_view number);

// Both are JSON numbers, and of one value: 12.5 and 12.50.
bool AreSameNumber(std::string_view a, std::string_view b);

// A JSON number that is whole, as its digits: 1.0, 1e3 and -0.0 are 1, 1000 and 0. It lies between
// least and most.
tl::expected<std::int64_t, std::string> WholeNumber(std::string_view number, std::int64_t least,
                                                    std::int64_t most);

// The number as a float or a double, with all its digits: printed with as many it is the same.
template <typename Float>
tl::expected<Float, std::string> FloatOf(std::string_view number);

tl::expected<PointInTime, std::string> PointInTimeOf(std::string_view number, Conversion unit);

// base64: RFC 4648, also with - and _, and without =. hex: two digits a byte.
tl::expected<std::string, std::string> Decoded(std::string_view text, Conversion encoding);
std::string ToHex(std::string_view bytes);

// --- what becomes of a cell, text[at, …): MakeCell ---
// Those bytes, as `encoding` says.
tl::expected<void, std::string> DecodeCell(Conversion encoding, std::string& text, std::size_t at);
// A JSON number that is whole, as its digits.
tl::expected<void, std::string> MakeCellWhole(std::int64_t least, std::uint64_t most,
                                              std::string& text, std::size_t at);
// For a column of JSON: JSON stays as it is, any other text becomes a string of it. `type`: what
// the selector found, where it reads JSON.
tl::expected<void, std::string> MakeCellJson(const Selector& from, std::optional<JsonType> type,
                                             std::string& text, std::size_t at);

}  // namespace fencepost::consumer
