#include "consumer/handlers/exec/exec_protocol.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/json/json_text.h"
#include "consumer/record/headers.h"
#include "consumer/record/text.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using Value = simdjson::ondemand::value;
template <typename T>
using OrWhy = tl::expected<T, std::string>;

constexpr std::size_t kMaxErrorText = 1000;
constexpr std::size_t kMaxClass = 64;

// JSON as it is, on one line: a newline in it can only be a blank between two tokens.
void AppendRawJson(std::string_view text, std::string& out) {
  const std::size_t from = out.size();
  out.append(Trimmed(text));
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(), '\n', ' ');
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(), '\r', ' ');
}

// Empty, or why a value that should be JSON is none.
std::string_view AppendValue(const Record& record, ExecValue form, std::string& out) {
  if (form == ExecValue::kJson) {
    const std::string_view why = record.value ? JsonProblem(*record.value) : "";
    out.append(",\"value\":");
    if (why.empty()) AppendRawJson(record.value.value_or("null"), out);
    return why;
  }
  const bool text = !record.value || IsUtf8(*record.value);
  out.append(text ? ",\"value_text\":" : ",\"value_base64\":");
  if (!record.value) {
    out.append("null");
  } else {
    AppendJsonString(text ? *record.value : ToBase64(*record.value), out);
  }
  return "";
}

void AppendKey(const Record& record, std::string& out) {
  out.append(",\"key\":");
  if (!record.key) {
    out.append("null");
  } else if (IsUtf8(*record.key)) {
    AppendJsonString(*record.key, out);
  } else {
    out.append("null,\"key_base64\":");
    AppendJsonString(ToBase64(*record.key), out);
  }
}

// Of equal names the last counts, as in selectors. A name that is not UTF-8 is left out.
void AppendHeaders(const Record& record, std::string& out) {
  std::string text;
  std::string base64;
  for (const auto& [name, value] : LastOfEachName(record.headers)) {
    if (!IsUtf8(name)) continue;
    const bool plain = !value || IsUtf8(*value);
    std::string& to = plain ? text : base64;
    if (!to.empty()) to.push_back(',');
    AppendJsonString(name, to);
    to.push_back(':');
    if (!value) {
      to.append("null");
    } else {
      AppendJsonString(plain ? *value : ToBase64(*value), to);
    }
  }
  out.append(",\"headers\":{").append(text).append("}");
  if (!base64.empty()) out.append(",\"headers_base64\":{").append(base64).append("}");
}

// The text of a JSON value; nullopt for null. The line it is from is known to be JSON.
OrWhy<std::optional<std::string>> RawText(Value value) {
  std::string_view text;
  if (const auto error = simdjson::to_json_string(value).get(text)) {
    return tl::unexpected(std::string(simdjson::error_message(error)));
  }
  if (text == "null") return std::nullopt;
  return std::string(text);
}

struct Reply {
  std::optional<HandlerValues> values;
  std::optional<std::string> error;
  std::string error_class = "exec_error";
  bool retry = true;
  std::optional<std::string> record_id;
  int results = 0;  // of value, values, value_text, value_base64 and error
};

constexpr const char* kTooMuch = "the sum of the values";  // is too large

OrWhy<HandlerValues> AllTexts(Value value) {
  simdjson::ondemand::array array;
  if (value.get_array().get(array)) return tl::unexpected<std::string>("values is not an array");
  HandlerValues values;
  std::size_t bytes = 0;
  for (auto item : array) {
    Value one;
    if (const auto error = std::move(item).get(one)) {
      return tl::unexpected(std::string(simdjson::error_message(error)));
    }
    auto text = RawText(one);
    if (!text) return tl::unexpected(text.error());
    bytes += sizeof *text + (*text ? (*text)->size() : 0);
    if (bytes > kMaxAnswerBytes) return tl::unexpected<std::string>(kTooMuch);
    values.push_back(std::move(*text));
  }
  return values;
}

OrWhy<std::string> StringOf(Value value, std::string_view name) {
  std::string_view text;
  if (value.get_string().get(text)) {
    return tl::unexpected(fmt::format("{} is not a string", name));
  }
  return std::string(text);
}

OrWhy<HandlerValues> ValuesOf(std::string_view name, Value value) {
  if (name == "values") return AllTexts(value);
  if (name == "value") {
    return RawText(value).map([](auto text) { return HandlerValues{std::move(text)}; });
  }
  auto text = StringOf(value, name);
  if (!text) return tl::unexpected(text.error());
  if (name == "value_text") return HandlerValues{std::move(*text)};
  auto bytes = FromBase64(*text);
  if (!bytes) return tl::unexpected<std::string>("value_base64 is not base64");
  return HandlerValues{std::move(*bytes)};
}

// Of a failure: a word, or an HTTP status. It is shown, so it is no place for parts of a record.
bool IsClass(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (text.size() == 3 && std::ranges::all_of(text, digit)) return true;
  return !text.empty() && text.size() <= kMaxClass && std::ranges::all_of(text, letter);
}

// Empty, or what is wrong. Names that are not known are passed over.
std::string TakeField(std::string_view name, Value value, Reply& reply) {
  if (name == "value" || name == "values" || name == "value_text" || name == "value_base64") {
    auto values = ValuesOf(name, value);
    if (!values) return values.error();
    reply.values = std::move(*values);
    ++reply.results;
  } else if (name == "error" || name == "class" || name == "record_id") {
    auto text = StringOf(value, name);
    if (!text) return text.error();
    if (name == "record_id") {
      reply.record_id = std::move(*text);
    } else if (name == "error") {
      reply.error = OneLine(*text, kMaxErrorText);
      ++reply.results;
    } else if (IsClass(*text)) {
      reply.error_class = std::move(*text);
    } else {
      return "class is neither a word of a-z and _ nor an HTTP status";
    }
  } else if (name == "retry" && value.get_bool().get(reply.retry)) {
    return "retry is neither true nor false";
  }
  return "";
}

}  // namespace

tl::expected<std::string, HandlerFailure> ExecRequestLine(const HandlerCall& call, ExecValue form) {
  const Record& record = call.record;
  std::string line = "{\"record_id\":";
  AppendJsonString(call.record_id, line);
  fmt::format_to(std::back_inserter(line), ",\"token\":{},\"source\":", call.token);
  AppendJsonString(SourceText(call.where, record.offset), line);
  line.append(",\"topic\":");
  AppendJsonString(call.where.topic, line);
  fmt::format_to(
      std::back_inserter(line), ",\"partition\":{},\"offset\":{},\"timestamp\":{},\"attempt\":{}",
      call.where.partition, record.offset,
      record.timestamp ? std::to_string(record.timestamp->count()) : "null", call.attempt);
  AppendKey(record, line);
  if (const std::string_view why = AppendValue(record, form, line); !why.empty()) {
    return tl::unexpected(NotJson(why, "values of another form: `handler.exec.value: text`"));
  }
  AppendHeaders(record, line);
  line.append("}\n");
  return line;
}

tl::expected<HandlerResult, std::string> ParseExecReply(std::string_view line,
                                                        std::string_view record_id) {
  // All of it is checked first: On-Demand only counts brackets on its way over a value. The values
  // are at its second or third level.
  if (const std::string_view why = JsonProblem(line, kMostJsonLevels + 2); !why.empty()) {
    return tl::unexpected(fmt::format("it is not JSON: {}", why));
  }
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(Trimmed(line));
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) {
    return tl::unexpected<std::string>("it is not a JSON object");
  }
  Reply reply;
  for (auto result : object) {
    simdjson::ondemand::field field;
    std::string_view name;
    if (std::move(result).get(field) || field.unescaped_key().get(name)) {
      return tl::unexpected<std::string>("it is not a JSON object");
    }
    // The name lies in the parser's buffer for strings, which the value may use too.
    if (std::string why = TakeField(std::string(name), field.value(), reply); !why.empty()) {
      if (why == kTooMuch) return TooLarge(why);
      return tl::unexpected(std::move(why));
    }
  }
  const bool anothers = reply.record_id && *reply.record_id != record_id;
  if (anothers && !Planted("reply_to_another_record_counts")) {
    return tl::unexpected<std::string>("its record_id is not that of the record");
  }
  if (reply.results != 1) {
    return tl::unexpected<std::string>(
        "it must have one of value, values, value_text, value_base64 and error");
  }
  if (reply.error) {
    return HandlerResult(tl::unexpected(HandlerFailure{.error_class = std::move(reply.error_class),
                                                       .text = std::move(*reply.error),
                                                       .shown = "the program refused the record",
                                                       .retry = reply.retry}));
  }
  return HandlerResult(std::move(*reply.values));
}

}  // namespace fencepost::consumer
