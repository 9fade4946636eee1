#include "consumer/record/selector.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_digest.h"
#include "consumer/json/json_reader.h"
#include "consumer/json/json_text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

struct Word {
  std::string_view text;
  Selector::Kind kind;
};
constexpr std::array<Word, 11> kWords{{{"position", Selector::Kind::kPosition},
                                       {"key", Selector::Kind::kKey},
                                       {"value", Selector::Kind::kValue},
                                       {"topic", Selector::Kind::kTopic},
                                       {"partition", Selector::Kind::kPartition},
                                       {"offset", Selector::Kind::kOffset},
                                       {"timestamp", Selector::Kind::kTimestamp},
                                       {"record_id", Selector::Kind::kRecordId},
                                       {"token", Selector::Kind::kToken},
                                       {"worker", Selector::Kind::kWorker},
                                       {"index", Selector::Kind::kIndex}}};

// What their argument follows.
constexpr std::array<Word, 5> kPrefixes{{{"header:", Selector::Kind::kHeader},
                                         {"json:", Selector::Kind::kJson},
                                         {"key:", Selector::Kind::kKeyJson},
                                         {"record:", Selector::Kind::kRecordJson},
                                         {"record.", Selector::Kind::kWholeJson}}};

template <typename Int>
void AppendInt(Int value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace

std::string LikelySelector(std::string_view text) {
  if (text.starts_with("$.")) {
    std::string pointer = "json:/" + std::string(text.substr(2));
    std::ranges::replace(pointer, '.', '/');
    return pointer;
  }
  const auto of_a_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (text.empty() || !std::ranges::all_of(text, of_a_name)) return "";
  return fmt::format("json:/{}", text);
}

tl::expected<Selector, std::string> Selector::Parse(std::string_view text) {
  Selector selector;
  if (!text.empty() && text.front() == '=') {
    selector.kind = Kind::kConstant;
    selector.argument = text.substr(1);
    return selector;
  }
  constexpr std::string_view kOmits = "?default";
  selector.omits = text.ends_with(kOmits);
  selector.optional = selector.omits || text.ends_with('?');
  if (selector.optional) text.remove_suffix(selector.omits ? kOmits.size() : 1);
  for (const auto& [prefix, kind] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    selector.kind = kind;
    selector.argument = text.substr(prefix.size());
    const bool header = kind == Kind::kHeader;
    if (header && selector.argument.empty()) {
      return tl::unexpected<std::string>("header: needs a name, as in header:id");
    }
    const std::string problem = header ? "" : JsonPointerProblem(selector.argument);
    if (problem.empty()) return selector;
    return tl::unexpected(fmt::format("{}, as in {}/order/id", problem, prefix));
  }
  const auto word =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.text == text; });
  if (word == kWords.end()) {
    return tl::unexpected(fmt::format("not a selector; {}", kSelectorForms));
  }
  selector.kind = word->kind;
  if (selector.kind == Kind::kPosition && selector.optional) {
    return tl::unexpected<std::string>("position is always there: leave the ? out");
  }
  return selector;
}

std::string Selector::InWords() const {
  const bool bare = ReadsJson() && argument.empty() && !optional;
  return bare ? Text() + " (the whole of it)" : Text();
}

std::string Selector::Text() const {
  if (kind == Kind::kConstant) return "=" + argument;
  using Words = std::span<const Word>;
  for (const Words words : {Words(kPrefixes), Words(kWords)}) {
    const auto word = std::ranges::find(words, kind, &Word::kind);
    if (word == words.end()) continue;
    return fmt::format("{}{}{}", word->text, argument, omits ? "?default" : optional ? "?" : "");
  }
  FENCEPOST_CHECK(false, "a selector of no known kind");
}

namespace {
// Confluent's wire format: a zero, and the schema's id in four bytes. No JSON begins so, but in
// UTF-16 it may, where the third byte is zero as well.
std::optional<std::uint32_t> RegisteredSchema(std::string_view bytes) {
  if (bytes.size() < 5 || bytes[0] != '\0') return std::nullopt;
  if (bytes[1] != '\0' && bytes[2] == '\0') return std::nullopt;
  std::uint32_t id = 0;
  for (const char c : bytes.substr(1, 4)) id = id << 8 | static_cast<unsigned char>(c);
  return id;
}

std::string_view Part(const Selector& selector) {
  return selector.kind == Selector::Kind::kKeyJson ? "key" : "value";
}
}  // namespace

struct Evaluator::Impl {
  RecordContext context;
  struct Part {
    JsonReader json;
    bool begun = false;
  };
  Part value, key, record, whole;
  std::string text;  // of AppendAsJson and Digest
  std::optional<JsonType> type;
  bool absent = false;
};

Evaluator::Evaluator() : impl_(std::make_unique<Impl>()) {}
Evaluator::~Evaluator() = default;

void Evaluator::Begin(const RecordContext& context) {
  FENCEPOST_CHECK(context.record != nullptr, "no record to evaluate");
  impl_->context = context;
  for (Impl::Part* part : {&impl_->value, &impl_->key, &impl_->record, &impl_->whole}) {
    part->begun = false;
  }
}

void Evaluator::BeginElement(const RecordContext& context) {
  impl_->context = context;
  impl_->value.begun = false;
}

std::optional<JsonType> Evaluator::type() const { return impl_->type; }
bool Evaluator::absent() const { return impl_->absent; }

const std::optional<std::string_view>& Evaluator::Bytes(Selector::Kind kind) const {
  const RecordContext& context = impl_->context;
  if (kind == Selector::Kind::kKeyJson) return context.record->key;
  if (kind == Selector::Kind::kWholeJson && context.whole != nullptr) return *context.whole;
  const bool made = context.value != nullptr && kind != Selector::Kind::kRecordJson;
  return made ? *context.value : context.record->value;
}

JsonReader* Evaluator::Json(Selector::Kind kind) {
  const std::optional<std::string_view>& text = Bytes(kind);
  if (!text) return nullptr;
  Impl::Part& part = kind == Selector::Kind::kKeyJson      ? impl_->key
                     : kind == Selector::Kind::kRecordJson ? impl_->record
                     : kind == Selector::Kind::kWholeJson  ? impl_->whole
                                                           : impl_->value;
  if (!part.begun) part.json.Begin(*text);
  part.begun = true;
  return &part.json;
}

tl::expected<bool, std::string> Evaluator::AppendJson(const Selector& selector, Form form,
                                                      std::string& out) {
  JsonReader* reader = Json(selector.kind);
  if (reader == nullptr) return NoValue(selector);
  const JsonFound found = form == Form::kJson ? reader->AppendRaw(selector.argument, out)
                                              : reader->Append(selector.argument, out);
  if (found == JsonFound::kValue) impl_->type = reader->type();
  return Found(selector, *reader, found);
}

// As an object or an array, in which a pointer may find something (RFC 8259).
static bool BeginsAsJson(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
}

tl::expected<bool, std::string> Evaluator::NoValue(const Selector& selector) const {
  impl_->absent = true;
  if (selector.optional) return false;
  return tl::unexpected(
      fmt::format("{} finds nothing: the record has no {}", selector.Text(), Part(selector)));
}

tl::expected<bool, std::string> Evaluator::Found(const Selector& selector, const JsonReader& reader,
                                                 JsonFound found) const {
  const std::string_view part = Part(selector);
  const auto& bytes = Bytes(selector.kind);
  const RecordContext& context = impl_->context;
  const bool element = context.whole != nullptr && &bytes == context.value;
  const auto* const answer = context.whole != nullptr ? context.whole : context.value;
  const bool made = answer != nullptr && &bytes == answer && answer != &context.record->value;
  const std::string whose = element ? "element" : made ? "handler's answer" : std::string(part);
  if (found == JsonFound::kMalformed) {
    if (const auto id = bytes && !made ? RegisteredSchema(*bytes) : std::nullopt) {
      return tl::unexpected(
          fmt::format("the {} begins with the magic byte of a schema registry (schema id {}): set "
                      "kafka.decode.{}",
                      part, *id, part));
    }
    return tl::unexpected(fmt::format("the {} is not valid JSON: {}", whose, reader.problem()));
  }
  if (found == JsonFound::kNothing && !selector.optional) {
    return tl::unexpected(
        fmt::format("{} finds nothing in the {}{}", selector.Text(), whose,
                    bytes && !BeginsAsJson(*bytes) ? ", which is no JSON object or array" : ""));
  }
  impl_->absent = found == JsonFound::kNothing;
  return found == JsonFound::kValue;
}

tl::expected<std::optional<std::uint64_t>, std::string> Evaluator::Digest(
    const Selector& selector) {
  std::uint64_t digest = 0;
  const auto or_null = [&](const tl::expected<bool, std::string>& found)
      -> tl::expected<std::optional<std::uint64_t>, std::string> {
    if (!found) return tl::unexpected(found.error());
    return *found ? std::optional(digest) : std::nullopt;
  };
  if (selector.ReadsJson()) {
    JsonReader* reader = Json(selector.kind);
    if (reader == nullptr) return or_null(NoValue(selector));
    return or_null(Found(selector, *reader, reader->Digest(selector.argument, digest)));
  }
  if (selector.kind == Selector::Kind::kValue) {
    JsonReader* reader = Json(selector.kind);
    if (reader != nullptr && reader->Digest("", digest) != JsonFound::kMalformed) return digest;
  }
  impl_->text.clear();
  const auto found = Append(selector, impl_->text);
  digest = DigestText(JsonKind::kBytes, impl_->text);
  return or_null(found);
}

tl::expected<void, std::string> Evaluator::AppendAsJson(const Selector& selector,
                                                        std::string& out) {
  const auto null_unless =
      [&](const tl::expected<bool, std::string>& found) -> tl::expected<void, std::string> {
    if (!found) return tl::unexpected(found.error());
    if (!*found) out += "null";
    return {};
  };
  switch (selector.kind) {
    case Selector::Kind::kJson:
    case Selector::Kind::kKeyJson:
    case Selector::Kind::kRecordJson:
    case Selector::Kind::kWholeJson:
      return null_unless(AppendJson(selector, Form::kJson, out));
    case Selector::Kind::kPartition:
    case Selector::Kind::kOffset:
    case Selector::Kind::kToken:
    case Selector::Kind::kTimestamp:
    case Selector::Kind::kIndex:
      return null_unless(Append(selector, out));
    default:
      break;
  }
  JsonReader* reader = selector.kind == Selector::Kind::kValue ? Json(selector.kind) : nullptr;
  if (reader != nullptr) {
    const JsonFound found = reader->AppendRaw("", out);
    if (found == JsonFound::kNull) out += "null";
    if (found != JsonFound::kMalformed) return {};
  }
  impl_->text.clear();
  const auto found = Append(selector, impl_->text);
  if (found && *found) AppendJsonBytes(impl_->text, out);
  return null_unless(found);
}

tl::expected<bool, std::string> Evaluator::Append(const Selector& selector, std::string& out) {
  const RecordContext& context = impl_->context;
  const Record& record = *context.record;
  const ReplayOrigin* const origin = context.origin;
  std::optional<std::string_view> bytes;
  bool named = false;  // the header is there, perhaps without a value
  impl_->type.reset();
  impl_->absent = false;
  switch (selector.kind) {
    case Selector::Kind::kPosition:
      FENCEPOST_CHECK(false, "position is for record_id only, see Identifier");
    case Selector::Kind::kJson:
    case Selector::Kind::kKeyJson:
    case Selector::Kind::kRecordJson:
    case Selector::Kind::kWholeJson:
      return AppendJson(selector, Form::kText, out);
    case Selector::Kind::kPartition:
      AppendInt(origin != nullptr ? origin->partition : context.where->partition, out);
      return true;
    case Selector::Kind::kOffset:
      AppendInt(origin != nullptr ? origin->offset : record.offset, out);
      return true;
    case Selector::Kind::kToken:
      AppendInt(context.token, out);
      return true;
    case Selector::Kind::kIndex:
      AppendInt(context.index, out);
      return true;
    case Selector::Kind::kTimestamp:
      if (const auto& at =
              origin != nullptr && origin->timestamp ? origin->timestamp : record.timestamp) {
        AppendInt(at->count(), out);
        return true;
      }
      break;
    case Selector::Kind::kKey:
      bytes = record.key;
      break;
    case Selector::Kind::kValue:
      // Of an element, which is JSON, what it is.
      if (context.whole != nullptr) {
        return AppendJson(
            {.kind = Selector::Kind::kJson, .argument = "", .optional = selector.optional},
            Form::kText, out);
      }
      bytes = Bytes(Selector::Kind::kValue);
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
        if (header.name == selector.argument) bytes = header.value, named = true;
      }
      break;
  }
  if (bytes) {
    out.append(*bytes);
    return true;
  }
  impl_->absent = !named;
  if (selector.optional) return false;
  return tl::unexpected(fmt::format("{} finds nothing in the record", selector.Text()));
}

}  // namespace fencepost::consumer
