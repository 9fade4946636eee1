#include "consumer/pipeline/required_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using Kind = Selector::Kind;

const HttpHandlerOptions* WithResult(const HandlerOptions& handler, HttpResult result) {
  const auto* const http = std::get_if<HttpHandlerOptions>(&handler.kind);
  return http != nullptr && http->result == result ? http : nullptr;
}

// The output's value is null where the record's own is, and else none of it is lost.
bool ValueStays(const HandlerOptions& handler) {
  return WithResult(handler, HttpResult::kKeep) != nullptr ||
         WithResult(handler, HttpResult::kMerge) != nullptr;
}

// Two pointers, of which the first leads to a part of what the second leads to, or to the same.
bool Within(std::string_view inner, std::string_view outer) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
}

// What `json:` finds is of the record itself.
bool IsOwn(const std::string& pointer, const HandlerOptions& handler) {
  if (WithResult(handler, HttpResult::kKeep) != nullptr) return true;
  const auto* const merges = WithResult(handler, HttpResult::kMerge);
  return merges != nullptr && !Within(pointer, merges->result_pointer) &&
         !Within(merges->result_pointer, pointer);
}

// Some records lack it, and the handler has no say in that.
bool MayBeMissing(const RequiredPart& part, const HandlerOptions& handler) {
  switch (part.selector.kind) {
    case Kind::kJson:
      return IsOwn(part.selector.argument, handler);
    case Kind::kValue:
      if (!ValueStays(handler)) return false;
      [[fallthrough]];
    case Kind::kKey:
    case Kind::kTimestamp:
    case Kind::kHeader:
      return !part.selector.optional || part.names_a_row;
    case Kind::kKeyJson:
    case Kind::kRecordJson:
    case Kind::kWholeJson:
      return true;
    default:
      return false;
  }
}

std::vector<RequiredPart> PartsOfRows(const std::vector<Column>& columns, const RowRules& rules,
                                      const HandlerOptions& handler) {
  std::vector<RequiredPart> parts;
  const auto add = [&](const std::string& name, const Selector& selector) {
    const bool key = std::ranges::find(rules.key, name) != rules.key.end();
    const bool deletes = key || name == rules.fence_column;
    const bool of_values = rules.on_null_value == OnNull::kSkip ||
                           (rules.on_null_value == OnNull::kDelete && !deletes);
    if (of_values && !ValueStays(handler)) return;
    parts.push_back({.name = "column " + name,
                     .selector = selector,
                     .names_a_row = key && rules.on_conflict == OnConflict::kUpdate,
                     .of_values = of_values});
  };
  for (const Column& column : columns) add(column.name, column.selector);
  if (rules.fence_by) add(rules.fence_column, *rules.fence_by);
  return parts;
}

// An effect that a record may not have needs nothing of it.
std::vector<RequiredPart> PartsOfEffect(const Effect& effect, const HandlerOptions& handler) {
  if (effect.each || effect.when.any() || effect.route) return {};
  std::vector<RequiredPart> parts = PartsOfRows(effect.columns, effect.rules, handler);
  for (std::size_t i = 0; i < effect.args.size(); ++i) {
    parts.push_back({fmt::format("argument ${}", i + 1), effect.args[i]});
  }
  return parts;
}

// A record of the output that there may not be needs nothing.
std::vector<RequiredPart> PartsOfTopic(const KafkaOutputOptions& kafka) {
  std::vector<RequiredPart> parts;
  bool always = false;
  for (const KafkaRecord& record : RecordsOf(kafka)) {
    if (record.when.any() || record.route || !record.program.empty()) continue;
    parts.push_back({"key", record.key});
    parts.push_back({"value", record.value});
    always = true;
  }
  if (!always) return parts;
  for (const Column& header : kafka.headers.set) parts.push_back({header.name, header.selector});
  return parts;
}

std::vector<RequiredPart> AllParts(const OutputOptions& output, const HandlerOptions& handler) {
  return std::visit(
      [&](const auto& kind) -> std::vector<RequiredPart> {
        std::vector<RequiredPart> parts;
        if constexpr (requires { kind.headers; }) {
          return PartsOfTopic(kind);
        } else if constexpr (requires { kind.effects; }) {
          for (const Effect& effect : EffectsOf(kind)) {
            for (RequiredPart& part : PartsOfEffect(effect, handler)) {
              parts.push_back(std::move(part));
            }
          }
        } else if constexpr (requires { kind.columns; }) {
          parts = PartsOfRows(kind.columns, {}, handler);
        }
        return parts;
      },
      output);
}

}  // namespace

std::vector<RequiredPart> RequiredPartsOf(const OutputOptions& output,
                                          const HandlerOptions& handler) {
  std::vector<RequiredPart> parts = AllParts(output, handler);
  std::erase_if(parts, [&](const RequiredPart& part) { return !MayBeMissing(part, handler); });
  return parts;
}

std::string MissingPart(const std::vector<RequiredPart>& parts, const RecordContext& context,
                        Evaluator& evaluator) {
  if (parts.empty()) return "";
  evaluator.Begin(context);
  std::string text;
  for (const RequiredPart& part : parts) {
    if (part.of_values && !context.record->value) continue;
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
