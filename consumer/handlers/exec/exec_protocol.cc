#include "consumer/handlers/exec/exec_protocol.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/handlers/call_text.h"
#include "consumer/json/json_text.h"
#include "consumer/record/headers.h"
#include "consumer/record/text.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using Value = simdjson::ondemand::value;
template <typename T>
using OrWhy = tl::expected<T, std::string>;

// Empty, or why a value that should be JSON is none.
std::string_view AppendValue(const Record& record, ExecValue form, std::string& out) {
  if (form == ExecValue::kJson) {
    const std::string_view why = record.value ? JsonProblem(*record.value) : "";
    out.append(",\"value\":");
    if (why.empty()) AppendJsonLine(record.value.value_or("null"), out);
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

// Of equal names the last counts, as in selectors. A name that is not UTF-8 is left out.
void AppendHeaders(const HandlerCall& call, std::string& out) {
  std::vector<HeaderView> traced;
  const std::string trace = call.trace.there() ? TraceparentText(call.trace) : "";
  if (!trace.empty()) SetTraceparent(trace, traced = call.record.headers);
  std::string text;
  std::string base64;
  for (const auto& [name, value] : LastOfEachName(trace.empty() ? call.record.headers : traced)) {
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

constexpr std::string_view kTooMuch = "the sum of the values";  // is too large

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
    if (bytes > kMaxAnswerBytes) return tl::unexpected(std::string(kTooMuch));
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
      reply.error = OneLine(*text, kMaxFailureText);
      ++reply.results;
    } else if (IsFailureClass(*text)) {
      reply.error_class = std::move(*text);
    } else {
      return "class is neither a word of a-z and _ nor an HTTP status";
    }
  } else if (name == "retry" && value.get_bool().get(reply.retry)) {
    return "retry is neither true nor false";
  }
  return "";
}

// All of a line is checked first: On-Demand only counts brackets on its way over a value.
std::string NotALine(std::string_view line, int levels) {
  const std::string_view why = JsonProblem(line, levels);
  return why.empty() ? "" : fmt::format("it is not JSON: {}", why);
}

constexpr const char* kNoObject = "it is not a JSON object";
constexpr const char* kAnothers = "its record_id is not that of the record";

OrWhy<Reply> ReplyIn(simdjson::ondemand::object object) {
  Reply reply;
  for (auto result : object) {
    simdjson::ondemand::field field;
    std::string_view name;
    if (std::move(result).get(field) || field.unescaped_key().get(name)) {
      return tl::unexpected<std::string>(kNoObject);
    }
    // The name lies in the parser's buffer for strings, which the value may use too.
    if (std::string why = TakeField(std::string(name), field.value(), reply); !why.empty()) {
      return tl::unexpected(std::move(why));
    }
  }
  if (reply.results == 1) return reply;
  return tl::unexpected<std::string>(
      "it must have one of value, values, value_text, value_base64 and error");
}

HandlerResult ResultOf(Reply reply) {
  if (!reply.error) return std::move(*reply.values);
  return tl::unexpected(HandlerFailure{.error_class = std::move(reply.error_class),
                                       .text = std::move(*reply.error),
                                       .shown = "the program refused the record",
                                       .retry = reply.retry});
}

HandlerResult NoReply() {
  const std::string text = "the reply to its batch says nothing of this record";
  return tl::unexpected(
      HandlerFailure{.error_class = "exec_protocol", .text = text, .shown = text});
}

}  // namespace

tl::expected<std::string, HandlerFailure> ExecRequest(const HandlerCall& call, ExecValue form) {
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
  AppendJsonKey(record, line);
  if (const std::string_view why = AppendValue(record, form, line); !why.empty()) {
    return tl::unexpected(NotJson(why, "values of another form: `handler.exec.value: text`"));
  }
  AppendHeaders(call, line);
  line.append("}");
  return line;
}

std::string ExecLine(std::span<const std::string> requests, bool batch) {
  if (!batch) return requests.front() + "\n";
  return fmt::format("{{\"batch\":[{}]}}\n", fmt::join(requests, ","));
}

bool IsExecHeartbeat(std::string_view line) {
  constexpr std::size_t kLongest = 100;
  if (line.size() > kLongest || !NotALine(line, 2).empty()) return false;
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(Trimmed(line));
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) return false;
  int beats = 0;
  int members = 0;
  for (auto member : object) {
    simdjson::ondemand::field field;
    std::string_view name;
    bool beat = false;
    if (std::move(member).get(field) || field.unescaped_key().get(name)) return false;
    ++members;
    if (name == "heartbeat" && !field.value().get_bool().get(beat) && beat) ++beats;
  }
  return beats == 1 && members == 1;
}

tl::expected<HandlerResult, std::string> ParseExecReply(std::string_view line,
                                                        std::string_view record_id) {
  // The values are at its second or third level.
  if (std::string why = NotALine(line, kMostJsonLevels + 2); !why.empty()) {
    return tl::unexpected(std::move(why));
  }
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(Trimmed(line));
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) {
    return tl::unexpected<std::string>(kNoObject);
  }
  auto reply = ReplyIn(object);
  if (!reply && reply.error() == kTooMuch) return TooLarge(kTooMuch);
  if (!reply) return tl::unexpected(std::move(reply.error()));
  const bool anothers = reply->record_id && *reply->record_id != record_id;
  if (anothers && !Planted("reply_to_another_record_counts")) {
    return tl::unexpected<std::string>(kAnothers);
  }
  return ResultOf(std::move(*reply));
}

tl::expected<std::vector<HandlerResult>, std::string> ParseExecBatch(
    std::string_view line, std::span<const std::string_view> record_ids) {
  if (std::string why = NotALine(line, kMostJsonLevels + 4); !why.empty()) {
    return tl::unexpected(std::move(why));
  }
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(Trimmed(line));
  simdjson::ondemand::document document;
  simdjson::ondemand::array replies;
  if (parser.iterate(padded).get(document) || document["batch"].get_array().get(replies)) {
    return tl::unexpected<std::string>("it is not {\"batch\": [REPLY, …]}");
  }
  std::unordered_map<std::string_view, std::optional<HandlerResult>> found;
  for (const std::string_view id : record_ids) found.emplace(id, std::nullopt);
  for (auto element : replies) {
    simdjson::ondemand::object object;
    if (std::move(element).get_object().get(object)) {
      return tl::unexpected(fmt::format("a reply of the batch: {}", kNoObject));
    }
    auto reply = ReplyIn(object);
    if (!reply) return tl::unexpected(fmt::format("a reply of the batch: {}", reply.error()));
    if (!reply->record_id) return tl::unexpected<std::string>("a reply of the batch: no record_id");
    const auto at = found.find(*reply->record_id);
    if (at == found.end()) {
      return tl::unexpected<std::string>(
          "a reply of the batch: its record_id is of no record of it");
    }
    if (at->second)
      return tl::unexpected<std::string>("two replies of the batch have one record_id");
    at->second = ResultOf(std::move(*reply));
  }
  std::vector<HandlerResult> results;
  for (const std::string_view id : record_ids) results.push_back(found[id].value_or(NoReply()));
  return results;
}

}  // namespace fencepost::consumer
