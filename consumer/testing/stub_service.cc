#include "consumer/testing/stub_service.h"

#include <strings.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/pipeline/error_class.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kAnswerTakes{10};

bool Succeeds(const HttpHandlerOptions& options, const HttpStub& stub) {
  return MatchClass(options.success, std::to_string(stub.status)) != ClassMatch::kNone;
}

void AppendText(const std::string& text, std::string& out) {
  if (text.empty()) {
    out += "null";
  } else if (JsonProblem(text).empty()) {
    out += text;
  } else {
    AppendJsonString(text, out);
  }
}

// What the service says of one record of a batch.
std::string VerdictOf(const HttpHandlerOptions& options, const HttpStub& stub,
                      const std::string& record_id) {
  std::string verdict = "{\"id\":";
  AppendJsonString(record_id, verdict);
  if (Succeeds(options, stub)) {
    verdict += ",\"value\":";
    AppendText(stub.body, verdict);
    return verdict + "}";
  }
  const std::string status = std::to_string(stub.status);
  const bool again = MatchClass(options.retry_on, status) != ClassMatch::kNone;
  verdict += fmt::format(",\"error\":{{\"class\":\"{}\",\"retry\":{},\"message\":", status, again);
  AppendJsonString("HTTP " + status, verdict);
  return verdict + "}}";
}

std::string BatchAnswer(const HttpHandlerOptions& options, const CallBatch& calls,
                        const std::vector<HttpStub*>& stubs, const std::string& form) {
  std::vector<std::string> elements;
  const bool values = form == "values" || form == "few";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::string& element = elements.emplace_back();
    if (values) {
      AppendText(stubs[i]->body, element);
    } else {
      element = VerdictOf(options, *stubs[i], calls[i].record_id);
    }
  }
  if (form == "few") elements.pop_back();
  if (form == "half") elements.resize((elements.size() + 1) / 2);
  if (form == "twice") elements.back() = elements.front();
  if (form == "reversed") std::ranges::reverse(elements);
  if (options.batch_form == HttpBatchForm::kNdjson) {
    return fmt::format("{}\n", fmt::join(elements, "\n"));
  }
  return fmt::format("[{}]", fmt::join(elements, ","));
}

}  // namespace

HttpStub* StubService::Find(const std::string& record_id) {
  for (const bool for_record : {true, false}) {
    for (HttpStub& stub : stubs_) {
      if (stub.record_id.has_value() != for_record) continue;
      if (for_record && *stub.record_id != record_id) continue;
      if (!stub.times || *stub.times > 0) return &stub;
    }
  }
  return nullptr;
}

void StubService::Use(HttpStub& stub) {
  if (stub.times) {
    --*stub.times;
  } else if (!stub.record_id) {
    // Used in order: without a number each answers once, but the last.
    const HttpStub* const end = stubs_.data() + stubs_.size();
    const bool later = std::any_of(static_cast<const HttpStub*>(&stub) + 1, end,
                                   [](const HttpStub& s) { return !s.record_id.has_value(); });
    if (later) stub.times = 0;
  }
}

StubService::Reply StubService::Answer(const HttpHandlerOptions& options, const CallBatch& calls,
                                       Millis now) {
  std::vector<HttpStub*> stubs;
  for (const HandlerCall& call : calls) {
    stubs.push_back(Find(call.record_id));
    if (stubs.back() != nullptr) continue;
    unanswered_.push_back(call.record_id);
    return {tl::unexpected(HandlerFailure{.error_class = "connection",
                                          .text = "the test has no stub for this call",
                                          .retry = false})};
  }
  // The stub of all records is that of the request, and used once by it.
  const auto of_all = std::ranges::find_if(stubs, [](auto* stub) { return !stub->record_id; });
  const HttpStub whole = **(of_all == stubs.end() ? stubs.begin() : of_all);
  const bool silent = std::ranges::any_of(stubs, [](auto* stub) { return stub->timeout; });
  const bool batch = options.batch.max_records > 1;
  HttpAnswer answer{.status = whole.status, .body = whole.body, .retry_after = std::nullopt};
  if (batch && (whole.record_id || Succeeds(options, whole))) {
    answer.status = Succeeds(options, whole) ? whole.status : 200;
    answer.body = BatchAnswer(options, calls, stubs, whole.batch);
  }
  for (const auto& [name, value] : whole.headers) {
    if (strcasecmp(name.c_str(), "Retry-After") != 0) continue;
    answer.retry_after = ParseRetryAfter(value, now);
  }
  for (std::size_t i = 0; i < stubs.size(); ++i) {
    if (stubs[i]->record_id || of_all - stubs.begin() == static_cast<std::ptrdiff_t>(i)) {
      Use(*stubs[i]);
    }
  }
  if (!silent) return {BodyOf(options, std::move(answer)), kAnswerTakes};
  return {tl::unexpected(HandlerFailure{.error_class = "timeout", .text = "no answer"}), timeout_};
}

}  // namespace fencepost::consumer
