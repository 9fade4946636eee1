#include "consumer/record/content.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "consumer/json/json_digest.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/headers.h"

namespace fencepost::consumer {
namespace {

constexpr std::uint64_t kAbsent = 0;

// Its name is stored with every digest: another rule, or the same one with another meaning, gets
// another name.
std::string NameOf(const ContentRule& rule) {
  switch (rule.kind) {
    case ContentRule::Kind::kValue:
      return "value/1";
    case ContentRule::Kind::kNone:
      return "none/1";
    case ContentRule::Kind::kRecord:
      return "record/1";
    case ContentRule::Kind::kSelectors:
      break;
  }
  std::string name = "selectors/1";
  for (const Selector& selector : rule.selectors) name.append(1, '\0').append(selector.Text());
  return name;
}

locking::ContentCrc MeaningOf(const ContentRule& rule) {
  return ((DigestText(JsonKind::kBytes, NameOf(rule)) & 0x7fff'ffff) | 1) << 32;
}

std::uint64_t DigestBytes(std::optional<std::string_view> bytes) {
  return bytes ? DigestText(JsonKind::kBytes, *bytes) : kAbsent;
}

std::uint64_t DigestRecord(const Record& record, const ReplayOrigin* origin) {
  DigestOfParts parts;
  parts.AddOrdered(DigestBytes(record.KafkaKey()));
  parts.AddOrdered(DigestBytes(record.KafkaValue()));
  for (const HeaderView& header : record.headers) {
    // What a dead letter adds is not content: a replay is the record that it was. Nor is the trace.
    if (IsDeadLetterHeader(header.name) || IsTraceHeader(header.name)) continue;
    parts.AddOrdered(DigestBytes(header.name));
    parts.AddOrdered(DigestBytes(header.value));
  }
  const auto& timestamp = origin != nullptr ? origin->timestamp : record.timestamp;
  const std::int64_t millis = timestamp ? timestamp->count() : -1;
  parts.AddOrdered(static_cast<std::uint64_t>(millis));
  return parts.Value(JsonKind::kArray);
}

}  // namespace

locking::ContentCrc ContentOfRecord(const Record& record, const ReplayOrigin* origin) {
  static const locking::ContentCrc kMeaning =
      MeaningOf({.kind = ContentRule::Kind::kRecord, .selectors = {}});
  return kMeaning | (DigestRecord(record, origin) & 0xffff'ffff);
}

ContentDigest::ContentDigest(ContentRule rule)
    : rule_(std::move(rule)), meaning_(MeaningOf(rule_)) {
  if (rule_.kind == ContentRule::Kind::kValue) {
    rule_.selectors = {{.kind = Selector::Kind::kValue, .optional = true}};
  }
}

tl::expected<locking::ContentCrc, std::string> ContentDigest::Of(const Record& record,
                                                                 const ReplayOrigin* origin,
                                                                 Evaluator& evaluator) {
  if (rule_.kind == ContentRule::Kind::kRecord) return ContentOfRecord(record, origin);
  DigestOfParts parts;
  for (const Selector& selector : rule_.selectors) {
    const auto digest = evaluator.Digest(selector);
    if (!digest) return tl::unexpected(digest.error());
    parts.AddOrdered(digest->value_or(kAbsent));
  }
  return meaning_ | (parts.Value(JsonKind::kArray) & 0xffff'ffff);
}

}  // namespace fencepost::consumer
