#include "consumer/handlers/http/http_batch.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/handlers/call_text.h"
#include "consumer/json/json_text.h"
#include "consumer/record/text.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using JsonObject = simdjson::ondemand::object;
using JsonValue = simdjson::ondemand::value;
using Bodies = std::vector<AnswerBody>;

// An element of an answer.
struct HttpElement {
  std::string text;
  std::optional<std::string> id;            // the text or number that an object has under this name
  bool odd_id = false;                      // it has something else there
  std::optional<std::string> value, error;  // its members, as JSON

  // It says itself of which record it speaks.
  [[nodiscard]] bool IsVerdict() const { return id && (value || error); }
  // It is a verdict, and does not say on which record.
  [[nodiscard]] bool IsVerdictOnNone() const {
    return !id && (odd_id ? value || error : error && *error != "null");
  }
};
using Elements = std::vector<HttpElement>;

HandlerFailure BadAnswer(std::string why) {
  return {.error_class = "bad_answer", .text = why, .shown = std::move(why)};
}

std::string JsonOf(JsonValue value) {
  std::string_view text;
  // What it is from is known to be JSON.
  return simdjson::to_json_string(value).get(text) ? std::string() : std::string(text);
}

HttpElement ElementOf(std::string text) {
  HttpElement element{.text = std::move(text)};
  if (!element.text.starts_with('{')) return element;
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(element.text);
  simdjson::ondemand::document document;
  JsonObject object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) return element;
  for (auto member : object) {
    simdjson::ondemand::field field;
    std::string_view name;
    if (std::move(member).get(field) || field.unescaped_key().get(name)) return element;
    std::string_view id;
    if (name == "id") {
      element.id.reset();
      simdjson::ondemand::json_type type{};
      if (field.value().type().get(type)) return element;
      if (type == simdjson::ondemand::json_type::string && !field.value().get_string().get(id)) {
        element.id = std::string(id);
      } else if (type == simdjson::ondemand::json_type::number) {
        element.id = JsonOf(field.value());
      }
      element.odd_id = !element.id;
    } else if (name == "value") {
      element.value = JsonOf(field.value());
    } else if (name == "error") {
      element.error = JsonOf(field.value());
    }
  }
  return element;
}

// nullopt: it is no JSON array.
std::optional<Elements> ElementsOfArray(std::string_view text) {
  if (!text.starts_with('[') || !JsonProblem(text, kMostJsonLevels + 3).empty()) {
    return std::nullopt;
  }
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(text);
  simdjson::ondemand::document document;
  simdjson::ondemand::array array;
  if (parser.iterate(padded).get(document) || document.get_array().get(array)) return std::nullopt;
  Elements elements;
  for (auto item : array) {
    JsonValue value;
    if (std::move(item).get(value)) return std::nullopt;
    elements.push_back(ElementOf(JsonOf(value)));
  }
  return elements;
}

// nullopt: a line is no JSON. One line with an array of nothing but verdicts is that array.
std::optional<Elements> ElementsOfLines(std::string_view text) {
  Elements elements;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (!JsonProblem(line, kMostJsonLevels + 3).empty()) return std::nullopt;
    elements.push_back(ElementOf(std::string(line)));
  }
  if (elements.size() != 1) return elements;
  auto array = ElementsOfArray(elements.front().text);
  const bool verdicts = array && !array->empty() &&
                        std::ranges::all_of(*array, [](const auto& e) { return e.IsVerdict(); });
  return verdicts ? std::move(array) : std::move(elements);
}

std::optional<std::string> NullOr(std::string json) {
  if (json == "null") return std::nullopt;
  return json;
}

HandlerFailure RefusalIn(const std::string& error) {
  constexpr const char* kNone =
      "the error is not {\"retry\": true or false, \"message\": TEXT, \"class\": a word of a-z and "
      "_, or a status}";
  HandlerFailure failure{.error_class = "http_error", .shown = "the service refused the record"};
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(error);
  simdjson::ondemand::document document;
  JsonObject object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) {
    return BadAnswer(kNone);
  }
  for (auto member : object) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(member).get(field) || field.unescaped_key().get(key)) return BadAnswer(kNone);
    const std::string name(key);
    std::string_view text;
    if (name == "retry") {
      if (field.value().get_bool().get(failure.retry)) return BadAnswer(kNone);
    } else if (name == "message" || name == "class") {
      if (field.value().get_string().get(text)) return BadAnswer(kNone);
      if (name == "class" && !IsFailureClass(text)) return BadAnswer(kNone);
      if (name == "class") failure.error_class = std::string(text);
      if (name == "message") failure.text = OneLine(text, kMaxFailureText);
    }
  }
  if (failure.text.empty()) failure.text = failure.shown;
  return failure;
}

// A member that is null beside the other is as good as none.
AnswerBody VerdictOf(HttpElement element) {
  const bool refused = element.error && *element.error != "null";
  const bool answered = element.value && (!refused || *element.value != "null");
  if (refused == answered) {
    return tl::unexpected(BadAnswer("its verdict must have one of value and error"));
  }
  if (refused) return tl::unexpected(RefusalIn(*element.error));
  return NullOr(std::move(*element.value));
}

tl::expected<Bodies, HandlerFailure> ById(Elements elements,
                                          std::span<const std::string_view> ids) {
  std::unordered_map<std::string_view, std::optional<AnswerBody>> found;
  for (const std::string_view id : ids) found.emplace(id, std::nullopt);
  for (HttpElement& element : elements) {
    const auto at = found.find(*element.id);
    if (at == found.end()) {
      return tl::unexpected(
          BadAnswer("the answer has the id of a record that is not in its batch"));
    }
    const bool again = at->second.has_value();
    at->second = again ? tl::unexpected(BadAnswer("the answer has two verdicts on this record"))
                       : VerdictOf(std::move(element));
  }
  Bodies bodies;
  for (const std::string_view id : ids) {
    bodies.push_back(found[id].value_or(
        tl::unexpected(BadAnswer("the answer to its batch has no verdict on this record"))));
  }
  return bodies;
}

tl::expected<Bodies, HandlerFailure> ByOrder(Elements elements,
                                             std::span<const std::string_view> ids) {
  if (elements.size() != ids.size()) {
    return tl::unexpected(
        BadAnswer(fmt::format("the answer has {} values for {} records, and no "
                              "ids that say for which",
                              elements.size(), ids.size())));
  }
  Bodies bodies;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& id = elements[i].id;
    if (id && *id != ids[i] && std::ranges::find(ids, *id) != ids.end()) {
      return tl::unexpected(
          BadAnswer("the values of the answer have ids, in another order than the request"));
    }
    bodies.emplace_back(NullOr(std::move(elements[i].text)));
  }
  return bodies;
}

}  // namespace

std::optional<HandlerFailure> HttpBatchText::Add(const HandlerCall& call,
                                                 const std::optional<std::string>& body) {
  const auto value = body ? std::string_view(*body) : "null";
  if (const std::string_view why = JsonProblem(value); !why.empty()) {
    return NotJson(why, "handler.http.batch sends JSON");
  }
  if (array_) text_.push_back(text_.empty() ? '[' : ',');
  text_.append("{\"id\":");
  AppendJsonString(call.record_id, text_);
  fmt::format_to(std::back_inserter(text_), ",\"token\":{},\"attempt\":{}", call.token,
                 call.attempt);
  if (call.trace.there()) {
    fmt::format_to(std::back_inserter(text_), ",\"traceparent\":\"{}\"",
                   TraceparentText(call.trace));
  }
  AppendJsonKey(call.record, text_);
  text_.append(",\"value\":");
  AppendJsonLine(value, text_);
  text_.append(array_ ? "}" : "}\n");
  return std::nullopt;
}

std::string HttpBatchText::Take() {
  if (array_) text_.push_back(']');
  return std::move(text_);
}

tl::expected<std::vector<AnswerBody>, HandlerFailure> ParseHttpBatch(
    const HttpHandlerOptions& options, const std::optional<std::string>& answer,
    std::span<const std::string_view> ids) {
  const std::string_view text = answer ? Trimmed(*answer) : "";
  const bool unread = options.result == HttpResult::kKeep || options.result == HttpResult::kMerge;
  if (!answer || (text.empty() && unread)) return Bodies(ids.size(), std::nullopt);
  const bool array = options.batch_form == HttpBatchForm::kArray;
  auto elements = array ? ElementsOfArray(text) : ElementsOfLines(text);
  if (!elements) {
    return tl::unexpected(
        BadAnswer(array ? "the answer is not a JSON array" : "a line of the answer is not JSON"));
  }
  if (std::ranges::any_of(*elements, [](const auto& e) { return e.IsVerdictOnNone(); })) {
    return tl::unexpected(
        BadAnswer("a verdict of the answer does not have its record's id, as it was sent"));
  }
  const auto verdicts = static_cast<std::size_t>(
      std::ranges::count_if(*elements, [](const auto& e) { return e.IsVerdict(); }));
  if (verdicts == 0 || Planted("verdicts_go_by_order")) return ByOrder(std::move(*elements), ids);
  if (verdicts == elements->size()) return ById(std::move(*elements), ids);
  return tl::unexpected(
      BadAnswer("some elements of the answer are verdicts with an id, others are not"));
}

bool IsTooMuch(const AnswerBody& body, const CallBatch& calls) {
  return !body && body.error().error_class == "413" && calls.size() > 1;
}

std::vector<HandlerResult> ResultsOf(const HttpHandlerOptions& options, AnswerBody body,
                                     const CallBatch& calls, HttpResultRule& rule) {
  tl::expected<Bodies, HandlerFailure> bodies;
  if (!body) {
    bodies = tl::unexpected(std::move(body.error()));
  } else if (options.batch.max_records > 1) {
    bodies = ParseHttpBatch(options, *body, RecordIds(calls));
  } else {
    bodies->push_back(std::move(body));
  }
  if (!bodies) {
    bodies.error().shared = calls.size() > 1;
    return std::vector<HandlerResult>(calls.size(), tl::unexpected(std::move(bodies.error())));
  }
  std::vector<HandlerResult> results;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    AnswerBody& one = (*bodies)[i];
    results.push_back(one ? rule.Apply(calls[i], std::move(*one))
                          : tl::unexpected(std::move(one.error())));
  }
  return results;
}

}  // namespace fencepost::consumer
