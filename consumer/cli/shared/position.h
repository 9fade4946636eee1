// Where a record is. A value; any thread.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "consumer/pipeline/options.h"
#include "consumer/record/record.h"

namespace fencepost::cli {

// Digits and nothing else, as far as they fit.
template <typename Int>
bool ReadNumber(std::string_view text, Int& value) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  return error == std::errc() && end == text.end() && value >= 0;
}

struct Position {
  consumer::TopicPartition where;
  consumer::Offset offset = 0;
  bool operator==(const Position&) const = default;
  [[nodiscard]] std::string Text() const { return SourceText(where, offset); }
};

// "topic/partition/offset", as in a ledger row's source; what is before it ("CLUSTER/…", in an
// id by position) is left out. Nothing where it is not of that form.
std::optional<Position> ParsePosition(std::string_view text);

// Why --id ID names no record of a pipeline whose ids are positions, with `how` to name one;
// nothing where it does, or where ids are others.
std::optional<std::string> WhyNoPosition(const consumer::PipelineOptions& options,
                                         std::string_view id, std::string_view how);

}  // namespace fencepost::cli
