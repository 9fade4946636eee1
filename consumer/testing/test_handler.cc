#include "consumer/testing/test_handler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/exec/exec_runner.h"
#include "consumer/handlers/http/http_batch.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kLinger{20};

// As it would be at each further call, which takes real time.
bool EndsSo(const HandlerResult& result) {
  if (result || result.error().shared) return false;
  const std::string& error = result.error().error_class;
  return error == "timeout" || error == "exec" || error == "exec_protocol";
}

}  // namespace

TestHandler::TestHandler(const PipelineOptions& options, std::vector<HttpStub> stubs,
                         ConsumerObserver* observer)
    : options_(options.handler),
      attempts_(options.retry.attempts),
      service_(std::move(stubs), options.processing.timeout) {
  if (!options_.any() || std::holds_alternative<HttpHandlerOptions>(options_.kind)) return;
  // Virtual time has passed; in real time its records come together.
  HandlerOptions handler = options_;
  auto* const exec = std::get_if<ExecHandlerOptions>(&handler.kind);
  if (exec != nullptr) exec->batch.linger = std::min(exec->batch.linger, kLinger);
  runner_ = MakeHandlerRunner(handler, options.name, 1, observer, [this](HandlerAnswer answer) {
    const std::lock_guard lock(mutex_);
    answers_.emplace(answer.id, std::move(answer.result));
    answered_.notify_one();
  });
}

TestHandler::~TestHandler() = default;

tl::expected<void, Error> TestHandler::Start() {
  if (runner_ != nullptr) return runner_->Start();
  if (!options_.any()) return {};
  HttpHandlerOptions http = std::get<HttpHandlerOptions>(options_.kind);
  // Nothing is connected, and the files are where the pipeline runs.
  for (std::string* file : {&http.tls_ca, &http.tls_certificate, &http.tls_key}) file->clear();
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

std::vector<TestHandler::Answer> TestHandler::Handle(CallBatch calls, Millis now) {
  const auto* const http = std::get_if<HttpHandlerOptions>(&options_.kind);
  if (stuck_) return Hang(calls, Millis(1));
  if (http == nullptr) return FromProgram(std::move(calls));
  const bool computes = http->body == HttpBody::kJq || http->result == HttpResult::kJq;
  return computes ? FromServiceInTime(calls, now) : FromService(calls, now);
}

std::vector<TestHandler::Answer> TestHandler::FromProgram(CallBatch calls) {
  std::vector<std::uint64_t> asked;
  for (HandlerCall& call : calls) {
    if (ends_so_.contains(call.record_id)) continue;
    asked.push_back(call.id);
    call.valid_until = Instant::max();  // it is of virtual time
    runner_->Call(call);
  }
  std::unique_lock lock(mutex_);
  const bool exec = std::holds_alternative<ExecHandlerOptions>(options_.kind);
  const Millis restart = exec ? ExecRunner::kMaxBackoff : Millis(0);
  const bool all = answered_.wait_for(lock, calls.front().timeout + kGrace + restart, [&] {
    return std::ranges::all_of(asked, [this](auto id) { return answers_.contains(id); });
  });
  if (!all) return Hang(calls, calls.front().timeout);
  std::vector<Answer> made;
  for (const HandlerCall& call : calls) {
    const auto answered = answers_.find(call.id);
    if (answered == answers_.end()) {
      made.push_back(ends_so_.at(call.record_id));
      continue;
    }
    const HandlerResult& result = answered->second;
    const bool late = !result && result.error().error_class == "timeout";
    made.push_back({result, late ? call.timeout : Millis(1)});
    if (call.attempt >= attempts_ && EndsSo(result)) ends_so_.emplace(call.record_id, made.back());
  }
  answers_.clear();
  return made;
}

std::vector<TestHandler::Answer> TestHandler::Hang(const CallBatch& calls, Millis timeout) {
  if (!stuck_) {
    stuck_ = fmt::format(
        "the handler hangs: it did not answer the call for {} within its timeout of {} ms, and did "
        "not end when it was stopped; does its program loop for ever?",
        calls.front().record_id, timeout.count());
  }
  const Answer hangs{tl::unexpected(HandlerFailure{
                         .error_class = "timeout", .text = "the handler hangs", .retry = false}),
                     timeout};
  return {calls.size(), hangs};
}

std::vector<TestHandler::Answer> TestHandler::FromServiceInTime(const CallBatch& calls,
                                                                Millis now) {
  std::thread thread([this, calls, now] {
    auto made = FromService(calls, now);
    const std::lock_guard lock(mutex_);
    from_service_ = std::move(made);
    answered_.notify_one();
  });
  std::unique_lock lock(mutex_);
  if (!answered_.wait_for(lock, calls.front().timeout + kGrace,
                          [this] { return from_service_.has_value(); })) {
    thread.detach();
    return Hang(calls, calls.front().timeout);
  }
  lock.unlock();
  thread.join();
  return *std::exchange(from_service_, std::nullopt);
}

std::string TestHandler::SharedOf(const HandlerCall& call) {
  return target_.batches() ? target_.SharedOf(call, evaluator_) : "";
}

std::optional<HandlerFailure> TestHandler::Refusal(const HandlerCall& call) {
  if (auto refusal = result_.Refusal(call)) return refusal;
  auto body = body_.Of(call);
  if (!body) return std::move(body.error());
  if (target_.batches()) {
    if (auto refusal = HttpBatchText(target_.options.batch_form).Add(call, *body)) return refusal;
    body->reset();
  }
  const auto parts = target_.PartsOf(call, std::move(*body), evaluator_);
  return parts ? std::optional<HandlerFailure>() : parts.error();
}

std::vector<TestHandler::Answer> TestHandler::FromService(const CallBatch& calls, Millis now) {
  std::vector<Answer> made;
  CallBatch sent;
  std::vector<std::size_t> places;  // in `made`
  for (const HandlerCall& call : calls) {
    auto refusal = Refusal(call);
    if (!refusal) {
      sent.push_back(call);
      places.push_back(made.size());
    }
    made.push_back(
        {refusal ? HandlerResult(tl::unexpected(std::move(*refusal))) : HandlerResult()});
  }
  if (sent.empty()) return made;
  StubService::Reply reply = service_.Answer(target_.options, sent, now);
  if (IsTooMuch(reply.body, sent)) return {};
  auto results = ResultsOf(target_.options, std::move(reply.body), sent, result_);
  for (std::size_t i = 0; i < sent.size(); ++i)
    made[places[i]] = {std::move(results[i]), reply.took};
  return made;
}

}  // namespace fencepost::consumer
