// A runner under test: calls made by hand, answers and notes kept.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/worker/worker_parts.h"
#include "tests/support/process.h"

namespace fencepost::consumer {

using namespace std::chrono_literals;

struct CallSpec {
  std::optional<std::string> value{};
  std::optional<std::string> key{};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers{};
  std::string record_id = "o-1";
  std::string topic = "orders";
  Millis timeout{20'000};
  Instant valid_until = Instant::max();
};

inline HandlerCall MakeCall(std::uint64_t id, const CallSpec& spec) {
  auto kept = std::make_shared<CallSpec>(spec);
  HandlerCall call{.id = id,
                   .where = {.topic = spec.topic, .partition = 3},
                   .record_id = spec.record_id,
                   .token = 9'007'199'254'740'993,
                   .attempt = 2,
                   .timeout = spec.timeout,
                   .valid_until = spec.valid_until};
  call.record.offset = 42;
  call.record.timestamp = 1'700'000'000'123ms;
  if (kept->value) call.record.value = *kept->value;
  if (kept->key) call.record.key = *kept->key;
  for (const auto& [name, value] : kept->headers) {
    call.record.headers.push_back({.name = name, .value = value});
  }
  call.record.owner = kept;
  return call;
}

class Recorder : public ConsumerObserver {
 public:
  void OnHandled(Nanos, const TraceContext&) override {
    const std::lock_guard guard(mutex_);
    ++handled_;
  }
  void OnNote(locking::Severity, std::string_view event, std::string_view text) override {
    const std::lock_guard guard(mutex_);
    notes_.push_back(std::string(event) + ": " + std::string(text));
  }
  void Take(HandlerAnswer answer) {
    const std::lock_guard guard(mutex_);
    answers_.push_back(std::move(answer));
  }

  int handled() const {
    const std::lock_guard guard(mutex_);
    return handled_;
  }
  std::vector<std::string> notes(std::string_view event = "") const {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> found;
    for (const std::string& note : notes_) {
      if (note.starts_with(event)) found.push_back(note);
    }
    return found;
  }
  std::vector<HandlerAnswer> answers() const {
    const std::lock_guard guard(mutex_);
    return answers_;
  }

 private:
  mutable std::mutex mutex_;
  int handled_ = 0;
  std::vector<std::string> notes_;
  std::vector<HandlerAnswer> answers_;
};

class RunnerFixture : public ::testing::Test {
 protected:
  ~RunnerFixture() override {
    if (runner_) runner_->Stop();
  }

  tl::expected<void, Error> TryStart(HandlerOptions options, int concurrency = 8) {
    runner_ = MakeHandlerRunner(options, "billing", concurrency, &recorder_,
                                [this](HandlerAnswer answer) {
                                  if (on_answer_) on_answer_(answer);
                                  recorder_.Take(std::move(answer));
                                });
    return runner_->Start();
  }
  void Start(HandlerOptions options, int concurrency = 8) {
    const auto started = TryStart(std::move(options), concurrency);
    if (!started) throw std::runtime_error(started.error().Line());
  }
  // The line of the error that Start gives.
  std::string StartError(HandlerOptions options) {
    const auto started = TryStart(std::move(options));
    return started ? "it started" : started.error().Line();
  }

  std::uint64_t Call(const CallSpec& spec) {
    runner_->Call(MakeCall(++last_id_, spec));
    return last_id_;
  }
  // The calls of records a, b, c, … with these values.
  std::vector<std::uint64_t> CallAll(const std::vector<std::string>& values) {
    std::vector<std::uint64_t> ids;
    for (const std::string& value : values) {
      const std::string record(1, static_cast<char>('a' + ids.size()));
      ids.push_back(Call({.value = value, .record_id = record, .timeout = timeout_}));
    }
    return ids;
  }
  // What became of them: the value, or "CLASS[ shared]: TEXT".
  std::vector<std::string> Outcomes(const std::vector<std::string>& values) {
    std::vector<std::string> outcomes;
    for (const std::uint64_t id : CallAll(values)) {
      const HandlerResult result = AnswerTo(id).result;
      outcomes.push_back(result ? result->at(0).value_or("null")
                                : fmt::format("{}{}: {}", result.error().error_class,
                                              result.error().shared ? " shared" : "",
                                              result.error().text));
    }
    return outcomes;
  }
  template <std::convertible_to<std::string> Text>
  std::uint64_t Call(const Text& value) {
    return Call(CallSpec{.value = value});
  }
  void Cancel(std::uint64_t id) { runner_->Cancel(id); }

  HandlerAnswer AnswerTo(std::uint64_t id) {
    std::optional<HandlerAnswer> found;
    testing::RequireWithin(
        20s,
        [&] {
          for (HandlerAnswer& answer : recorder_.answers()) {
            if (answer.id == id) found = std::move(answer);
          }
          return found.has_value();
        },
        "the answer");
    return std::move(*found);
  }
  HandlerResult ResultOf(const CallSpec& spec) { return AnswerTo(Call(spec)).result; }
  template <std::convertible_to<std::string> Text>
  HandlerResult ResultOf(const Text& value) {
    return ResultOf(CallSpec{.value = value});
  }
  // The one value of a call that succeeds.
  std::optional<std::string> ValueOf(const CallSpec& spec) {
    const HandlerResult result = ResultOf(spec);
    if (!result) throw std::runtime_error(result.error().error_class + ": " + result.error().text);
    if (result->size() != 1) throw std::runtime_error("not one value");
    return result->front();
  }
  template <std::convertible_to<std::string> Text>
  std::optional<std::string> ValueOf(const Text& value) {
    return ValueOf(CallSpec{.value = value});
  }
  HandlerFailure FailureOf(const CallSpec& spec) {
    HandlerResult result = ResultOf(spec);
    if (result) throw std::runtime_error("the call succeeded");
    return std::move(result.error());
  }
  template <std::convertible_to<std::string> Text>
  HandlerFailure FailureOf(const Text& value) {
    return FailureOf(CallSpec{.value = value});
  }
  // The class of a call's failure, whether it is tried again, and the text.
  template <typename Spec = CallSpec>
  std::string Told(const Spec& spec) {
    const HandlerFailure failure = FailureOf(spec);
    return failure.error_class + (failure.retry ? ", again: " : ", for good: ") + failure.text;
  }
  std::string ClassOf(std::uint64_t id) {
    const HandlerResult result = AnswerTo(id).result;
    return result ? "success" : result.error().error_class;
  }

  Recorder recorder_;
  std::function<void(const HandlerAnswer&)> on_answer_;  // on the runner's thread
  std::unique_ptr<HandlerRunner> runner_;
  Millis timeout_{20'000};  // of the calls of CallAll
  std::uint64_t last_id_ = 0;
};

}  // namespace fencepost::consumer
