#include "consumer/testing/test_handler.h"

#include <strings.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/exec/exec_runner.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::consumer {
namespace {

// As it would be at each further call, which takes real time.
bool EndsSo(const HandlerResult& result) {
  if (result) return false;
  const std::string& error = result.error().error_class;
  return error == "timeout" || error == "exec" || error == "exec_protocol";
}

}  // namespace

TestHandler::TestHandler(const PipelineOptions& options, std::vector<HttpStub> stubs,
                         ConsumerObserver* observer)
    : options_(options.handler),
      timeout_(options.processing.timeout),
      attempts_(options.retry.attempts),
      stubs_(std::move(stubs)) {
  if (!options_.any() || std::holds_alternative<HttpHandlerOptions>(options_.kind)) return;
  runner_ = MakeHandlerRunner(options_, options.name, 1, observer, [this](HandlerAnswer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    answered_.notify_one();
  });
}

TestHandler::~TestHandler() = default;

tl::expected<void, Error> TestHandler::Start() {
  if (runner_ != nullptr) return runner_->Start();
  if (!options_.any()) return {};
  HttpHandlerOptions http = std::get<HttpHandlerOptions>(options_.kind);
  http.tls_ca.clear();  // nothing is connected, and the files are where the pipeline runs
  auto body = HttpBodyRule::Make(http);
  if (!body) return tl::unexpected(body.error());
  body_ = std::move(*body);
  auto result = HttpResultRule::Make(http);
  if (!result) return tl::unexpected(result.error());
  result_ = std::move(*result);
  return HttpTarget::Make(http, "").map([this](HttpTarget target) { target_ = std::move(target); });
}

void TestHandler::Stop() {
  if (runner_ != nullptr && !stuck_) runner_->Stop();
}

TestHandler::Answer TestHandler::Handle(HandlerCall call, Millis now) {
  if (stuck_) return Hangs(call.record_id, Millis(1));
  if (const auto* http = std::get_if<HttpHandlerOptions>(&options_.kind)) {
    const bool computes = http->body == HttpBody::kJq || http->result == HttpResult::kJq;
    return computes ? FromServiceInTime(call, now) : FromService(call, now);
  }
  const Millis timeout = call.timeout;
  const std::string record_id = call.record_id;
  const int attempt = call.attempt;
  if (const auto known = ends_so_.find(record_id); known != ends_so_.end()) return known->second;
  runner_->Call(std::move(call));
  std::unique_lock lock(mutex_);
  const bool exec = std::holds_alternative<ExecHandlerOptions>(options_.kind);
  const Millis restart = exec ? ExecRunner::kMaxBackoff : Millis(0);
  if (!answered_.wait_for(lock, timeout + kGrace + restart,
                          [this] { return answer_.has_value(); })) {
    return Hangs(record_id, timeout);
  }
  const HandlerAnswer answer = *std::exchange(answer_, std::nullopt);
  const bool late = !answer.result && answer.result.error().error_class == "timeout";
  Answer made{answer.result, late ? timeout : Millis(1)};
  if (attempt >= attempts_ && EndsSo(answer.result)) ends_so_.emplace(record_id, made);
  return made;
}

TestHandler::Answer TestHandler::Hangs(const std::string& record_id, Millis timeout) {
  if (!stuck_) {
    stuck_ = fmt::format(
        "the handler hangs: it did not answer the call for {} within its timeout of {} ms, and did "
        "not end when it was stopped; does its program loop for ever?",
        record_id, timeout.count());
  }
  return {tl::unexpected(HandlerFailure{
              .error_class = "timeout", .text = "the handler hangs", .retry = false}),
          timeout};
}

TestHandler::Answer TestHandler::FromServiceInTime(const HandlerCall& call, Millis now) {
  std::thread thread([this, call, now] {
    Answer made = FromService(call, now);
    const std::lock_guard lock(mutex_);
    from_service_ = std::move(made);
    answered_.notify_one();
  });
  std::unique_lock lock(mutex_);
  if (!answered_.wait_for(lock, call.timeout + kGrace,
                          [this] { return from_service_.has_value(); })) {
    thread.detach();
    return Hangs(call.record_id, call.timeout);
  }
  lock.unlock();
  thread.join();
  return *std::exchange(from_service_, std::nullopt);
}

TestHandler::Answer TestHandler::FromService(const HandlerCall& call, Millis now) {
  if (auto refusal = result_.Refusal(call)) return {tl::unexpected(std::move(*refusal)), Millis(1)};
  if (auto body = body_.Of(call); !body)
    return {tl::unexpected(std::move(body.error())), Millis(1)};
  return FromStub(call, now);
}

// A stub for this record first, then those for any, in order; the last of either lasts for ever
// unless it says how many times.
TestHandler::Answer TestHandler::FromStub(const HandlerCall& call, Millis now) {
  const auto usable = [&](bool for_record) {
    auto last = stubs_.end();
    for (auto stub = stubs_.begin(); stub != stubs_.end(); ++stub) {
      if (stub->record_id.has_value() != for_record) continue;
      if (for_record && *stub->record_id != call.record_id) continue;
      if (stub->times && *stub->times == 0) continue;
      return stub;
    }
    return last;
  };
  auto stub = usable(true);
  if (stub == stubs_.end()) stub = usable(false);
  if (stub == stubs_.end()) {
    unanswered_.push_back(call.record_id);
    return {tl::unexpected(HandlerFailure{.error_class = "connection",
                                          .text = "the test has no stub for this call",
                                          .retry = false}),
            Millis(1)};
  }
  if (stub->times) {
    --*stub->times;
  } else if (!stub->record_id) {
    // Used in order: without a number each answers once, but the last.
    const auto later = std::find_if(stub + 1, stubs_.end(),
                                    [](const HttpStub& s) { return !s.record_id.has_value(); });
    if (later != stubs_.end()) stub->times = 0;
  }
  if (stub->timeout) {
    return {tl::unexpected(HandlerFailure{.error_class = "timeout", .text = "no answer"}),
            timeout_};
  }
  HttpAnswer answer{.status = stub->status, .body = stub->body, .retry_after = std::nullopt};
  for (const auto& [name, value] : stub->headers) {
    if (strcasecmp(name.c_str(), "Retry-After") != 0) continue;
    answer.retry_after = ParseRetryAfter(value, now);
  }
  AnswerBody body = BodyOf(target_.options, std::move(answer));
  if (!body) return {tl::unexpected(std::move(body.error())), Millis(10)};
  return {result_.Apply(call, std::move(*body)), Millis(10)};
}

}  // namespace fencepost::consumer
