// A set of offsets as ranges that neither overlap nor touch. Its text is that of PostgreSQL's
// int8multirange, "{[1,5),[7,9)}". A value; no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/record/record.h"

namespace fencepost::consumer {

struct PositionRange {
  Offset begin = 0;
  Offset end = 0;  // behind the last
};

class PositionRanges {
 public:
  PositionRanges() = default;

  // The offsets from `begin` on, without `end`; begin <= end.
  void Add(Offset begin, Offset end);
  void Add(const PositionRanges& other);
  void Remove(Offset begin, Offset end);

  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }      // ranges
  [[nodiscard]] Offset first() const { return ranges_.begin()->first; }  // not of an empty one
  [[nodiscard]] Offset end() const {
    return ranges_.rbegin()->second;
  }  // behind the last; likewise
  [[nodiscard]] std::vector<PositionRange> all() const;
  [[nodiscard]] bool Contains(Offset offset) const;
  [[nodiscard]] PositionRanges Minus(const PositionRanges& other) const;
  [[nodiscard]] std::uint64_t CountOffsets() const;
  [[nodiscard]] std::string Text() const;
  // Nothing where it is not exactly what Text writes.
  static std::optional<PositionRanges> Parse(std::string_view text);
  bool operator==(const PositionRanges&) const = default;

 private:
  std::map<Offset, Offset> ranges_;  // end by begin
};

}  // namespace fencepost::consumer
