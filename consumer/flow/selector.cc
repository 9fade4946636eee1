#include "consumer/flow/selector.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "consumer/flow/json_reader.h"
#include "locking/check.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kForms =
    "a selector is one of key, value, topic, partition, offset, timestamp, record_id, token, "
    "worker, "
    "header:NAME, json:/POINTER (each with ? at the end where null is fine), or \"=text\"";

struct Word {
  std::string_view text;
  Selector::Kind kind;
};
constexpr std::array<Word, 10> kWords{{{"position", Selector::Kind::kPosition},
                                       {"key", Selector::Kind::kKey},
                                       {"value", Selector::Kind::kValue},
                                       {"topic", Selector::Kind::kTopic},
                                       {"partition", Selector::Kind::kPartition},
                                       {"offset", Selector::Kind::kOffset},
                                       {"timestamp", Selector::Kind::kTimestamp},
                                       {"record_id", Selector::Kind::kRecordId},
                                       {"token", Selector::Kind::kToken},
                                       {"worker", Selector::Kind::kWorker}}};

template <typename Int>
void AppendInt(Int value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace

tl::expected<Selector, std::string> Selector::Parse(std::string_view text) {
  Selector selector;
  if (!text.empty() && text.front() == '=') {
    selector.kind = Kind::kConstant;
    selector.argument = text.substr(1);
    return selector;
  }
  if (!text.empty() && text.back() == '?') {
    selector.optional = true;
    text.remove_suffix(1);
  }
  if (text.starts_with("header:")) {
    selector.kind = Kind::kHeader;
    selector.argument = text.substr(7);
    if (selector.argument.empty())
      return tl::unexpected<std::string>("header: needs a name, as in header:id");
    return selector;
  }
  if (text.starts_with("json:")) {
    selector.kind = Kind::kJson;
    selector.argument = text.substr(5);
    if (std::string problem = JsonPointerProblem(selector.argument); !problem.empty()) {
      return tl::unexpected(problem + ", as in json:/order/id");
    }
    return selector;
  }
  const auto word =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.text == text; });
  if (word == kWords.end()) return tl::unexpected("not a selector; " + std::string(kForms));
  selector.kind = word->kind;
  if (selector.kind == Kind::kPosition && selector.optional) {
    return tl::unexpected<std::string>("position is always there: leave the ? out");
  }
  return selector;
}

std::string Selector::Text() const {
  const std::string_view tail = optional ? "?" : "";
  switch (kind) {
    case Kind::kConstant:
      return "=" + argument;
    case Kind::kHeader:
      return fmt::format("header:{}{}", argument, tail);
    case Kind::kJson:
      return fmt::format("json:{}{}", argument, tail);
    default:
      break;
  }
  for (const Word& word : kWords) {
    if (word.kind == kind) return fmt::format("{}{}", word.text, tail);
  }
  FENCEPOST_CHECK(false, "a selector of no known kind");
}

struct Evaluator::Impl {
  RecordContext context;
  JsonReader json;
  bool json_begun = false;
};

Evaluator::Evaluator() : impl_(std::make_unique<Impl>()) {}
Evaluator::~Evaluator() = default;

void Evaluator::Begin(const RecordContext& context) {
  FENCEPOST_CHECK(context.record != nullptr, "no record to evaluate");
  impl_->context = context;
  impl_->json_begun = false;
}

tl::expected<bool, std::string> Evaluator::AppendJson(const Selector& selector, std::string& out) {
  const std::optional<std::string_view>& value = impl_->context.record->value;
  if (!value) {
    if (selector.optional) return false;
    return tl::unexpected(
        fmt::format("{} finds nothing: the record has no value", selector.Text()));
  }
  if (!impl_->json_begun) impl_->json.Begin(*value);
  impl_->json_begun = true;
  const JsonFound found = impl_->json.Append(selector.argument, out);
  if (found == JsonFound::kMalformed) {
    return tl::unexpected("the value is not valid JSON: " + impl_->json.problem());
  }
  if (found == JsonFound::kNothing && !selector.optional) {
    return tl::unexpected(fmt::format("{} finds nothing in the value", selector.Text()));
  }
  return found == JsonFound::kValue;
}

tl::expected<bool, std::string> Evaluator::Append(const Selector& selector, std::string& out) {
  const RecordContext& context = impl_->context;
  const Record& record = *context.record;
  std::optional<std::string_view> bytes;
  switch (selector.kind) {
    case Selector::Kind::kPosition:
      FENCEPOST_CHECK(false, "position is for record_id only, see Identifier");
    case Selector::Kind::kJson:
      return AppendJson(selector, out);
    case Selector::Kind::kPartition:
      AppendInt(context.where->partition, out);
      return true;
    case Selector::Kind::kOffset:
      AppendInt(record.offset, out);
      return true;
    case Selector::Kind::kToken:
      AppendInt(context.token, out);
      return true;
    case Selector::Kind::kTimestamp:
      if (!record.timestamp) break;
      AppendInt(record.timestamp->count(), out);
      return true;
    case Selector::Kind::kKey:
      bytes = record.key;
      break;
    case Selector::Kind::kValue:
      bytes = record.value;
      break;
    case Selector::Kind::kTopic:
      bytes = context.where->topic;
      break;
    case Selector::Kind::kRecordId:
      bytes = context.record_id;
      break;
    case Selector::Kind::kWorker:
      bytes = context.worker;
      break;
    case Selector::Kind::kConstant:
      bytes = selector.argument;
      break;
    case Selector::Kind::kHeader:
      for (const HeaderView& header : record.headers) {
        if (header.name == selector.argument) bytes = header.value;
      }
      break;
  }
  if (bytes) {
    out.append(*bytes);
    return true;
  }
  if (selector.optional) return false;
  return tl::unexpected(fmt::format("{} finds nothing in the record", selector.Text()));
}

}  // namespace fencepost::consumer
