#include "tests/fault/positions/audit.h"

#include <fmt/format.h>

namespace fencepost::positions {

namespace {

struct Kind {
  const char* what;
  int count = 0;
  int first = 0;
  void Add(int order) {
    if (count++ == 0) first = order;
  }
};

}  // namespace

std::string AuditEffects(const Expected& expected, const std::vector<Effect>& effects) {
  Kind lost{"lost"};
  Kind doubled{"doubled"};
  Kind misplaced{"from another place"};
  Kind unknown{"never sent"};
  std::vector<int> counts(expected.sent.size());
  for (const Effect& effect : effects) {
    if (effect.order < 0 || static_cast<std::size_t>(effect.order) >= counts.size()) {
      unknown.Add(effect.order);
      continue;
    }
    const auto order = static_cast<std::size_t>(effect.order);
    ++counts[order];
    const Place& place = expected.sent[order];
    const bool there = place.partition == effect.partition && place.offset == effect.offset;
    if (!there) misplaced.Add(effect.order);
  }
  for (std::size_t order = 0; order < counts.size(); ++order) {
    const auto repeats = expected.repeats.find(static_cast<int>(order));
    const int most = 1 + (repeats == expected.repeats.end() ? 0 : repeats->second);
    if (counts[order] < 1) lost.Add(static_cast<int>(order));
    if (counts[order] > most) doubled.Add(static_cast<int>(order));
  }
  std::string text;
  for (const Kind& kind : {lost, doubled, misplaced, unknown}) {
    if (kind.count == 0) continue;
    text += fmt::format("{} {}, the first is o-{}", kind.count, kind.what, kind.first);
    if (kind.first >= 0 && static_cast<std::size_t>(kind.first) < expected.sent.size()) {
      const Place& place = expected.sent[static_cast<std::size_t>(kind.first)];
      text += fmt::format(" (log {}, {}/{})", place.log, place.partition, place.offset);
    }
    text += '\n';
  }
  return text;
}

std::string AuditLedger(const std::map<int, std::string>& ranges,
                        const std::vector<std::int64_t>& ends) {
  std::string text;
  for (std::size_t partition = 0; partition < ends.size(); ++partition) {
    const auto row = ranges.find(static_cast<int>(partition));
    const std::string has = row == ranges.end() ? "no row" : row->second;
    const std::string wanted = fmt::format("{{[0,{})}}", ends[partition]);
    if (has == wanted || (ends[partition] == 0 && row == ranges.end())) continue;
    text += fmt::format("partition {} has {} as done, not {}\n", partition, has, wanted);
  }
  return text;
}

}  // namespace fencepost::positions
