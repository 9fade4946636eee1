// Where a record is. A value; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "consumer/record/position_id.h"
#include "consumer/record/record.h"

namespace fencepost::cli {

struct Position {
  consumer::TopicPartition where;
  consumer::Offset offset = 0;
  bool operator==(const Position&) const = default;
  [[nodiscard]] std::string Text() const { return SourceText(where, offset); }
};

// "topic/partition/offset", as in a ledger row's source; what is before it ("CLUSTER/…", in an
// id by position) is left out. Nothing where it is not of that form.
inline std::optional<Position> ParsePosition(std::string_view text) {
  const std::string id = std::string("-/").append(text);
  const auto parsed = consumer::ParsePositionId(id);
  if (!parsed) return std::nullopt;
  return Position{{std::string(parsed->topic), parsed->partition}, parsed->offset};
}

}  // namespace fencepost::cli
