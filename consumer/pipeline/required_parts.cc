#include "consumer/pipeline/required_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using Kind = Selector::Kind;

// Some records lack it, and the handler has no say in that.
bool MayBeMissing(const RequiredPart& part) {
  switch (part.selector.kind) {
    case Kind::kKey:
    case Kind::kTimestamp:
    case Kind::kHeader:
      return !part.selector.optional || part.names_a_row;
    case Kind::kKeyJson:
    case Kind::kRecordJson:
      return true;
    default:
      return false;
  }
}

std::vector<RequiredPart> PartsOfRows(const std::vector<Column>& columns, const RowRules& rules) {
  std::vector<RequiredPart> parts;
  if (rules.on_null_value == OnNull::kSkip) return parts;
  const auto add = [&](const std::string& name, const Selector& selector) {
    const bool key = std::ranges::find(rules.key, name) != rules.key.end();
    const bool deletes = key || name == rules.fence_column;
    if (rules.on_null_value == OnNull::kDelete && !deletes) return;
    parts.push_back({.name = "column " + name,
                     .selector = selector,
                     .names_a_row = key && rules.on_conflict == OnConflict::kUpdate});
  };
  for (const Column& column : columns) add(column.name, column.selector);
  if (rules.fence_by) add(rules.fence_column, *rules.fence_by);
  return parts;
}

std::vector<RequiredPart> PartsOfTopic(const KafkaOutputOptions& kafka) {
  std::vector<RequiredPart> parts{{"key", kafka.key}, {"value", kafka.value}};
  for (const Column& header : kafka.headers.set) parts.push_back({header.name, header.selector});
  return parts;
}

std::vector<RequiredPart> AllParts(const OutputOptions& output) {
  return std::visit(
      [](const auto& kind) -> std::vector<RequiredPart> {
        std::vector<RequiredPart> parts;
        if constexpr (requires { kind.headers; }) {
          return PartsOfTopic(kind);
        } else if constexpr (requires { kind.rules; }) {
          parts = PartsOfRows(kind.columns, kind.rules);
        } else if constexpr (requires { kind.columns; }) {
          parts = PartsOfRows(kind.columns, {});
        }
        if constexpr (requires { kind.args; }) {
          for (const Selector& arg : kind.args) {
            parts.push_back({fmt::format("argument ${}", parts.size() + 1), arg});
          }
        }
        return parts;
      },
      output);
}

}  // namespace

std::vector<RequiredPart> RequiredPartsOf(const OutputOptions& output) {
  std::vector<RequiredPart> parts = AllParts(output);
  std::erase_if(parts, [](const RequiredPart& part) { return !MayBeMissing(part); });
  return parts;
}

std::string MissingPart(const std::vector<RequiredPart>& parts, const RecordContext& context,
                        Evaluator& evaluator) {
  if (parts.empty()) return "";
  evaluator.Begin(context);
  std::string text;
  for (const RequiredPart& part : parts) {
    text.clear();
    const auto found = evaluator.Append(part.selector, text);
    if (found && (*found || !part.names_a_row)) continue;
    return OneLine(fmt::format("{} from {}: {}", part.name, part.selector.InWords(),
                               found ? "a key cannot be null" : found.error()),
                   1000);
  }
  return "";
}

}  // namespace fencepost::consumer
