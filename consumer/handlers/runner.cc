#include "consumer/handlers/runner.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "consumer/handlers/exec_runner.h"
#include "consumer/handlers/http_runner.h"
#include "consumer/handlers/jq_handler.h"
#include "consumer/handlers/pool_runner.h"

namespace fencepost::consumer {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

// "4xx" for "404"; empty for what is no status.
std::string HundredOf(std::string_view error_class) {
  const bool status =
      error_class.size() == 3 && std::all_of(error_class.begin(), error_class.end(),
                                             [](char c) { return c >= '0' && c <= '9'; });
  return status ? std::string(1, error_class.front()) + "xx" : "";
}

int JqThreads(int concurrency) {
  const auto hardware = static_cast<int>(std::thread::hardware_concurrency());
  return std::min(concurrency, std::max(hardware, 1));
}

tl::expected<std::unique_ptr<Handler>, Error> CompileJq(const std::string& program) {
  WarmUpJq();
  return JqHandler::Make(program);
}

PoolRunner::Make MakeJq(const std::string& program) {
  return [program] { return CompileJq(program); };
}

PoolRunner::Make MakeCustom(const CustomHandlerOptions& options) {
  return [make = options.make]() -> tl::expected<std::unique_ptr<Handler>, Error> {
    auto handler = make ? make() : nullptr;
    if (handler) return handler;
    return tl::unexpected(Error{.code = "bad_config",
                                .what = "the program's handler was not made",
                                .where = "CustomHandlerOptions::make",
                                .hint = "it must return a Handler"});
  };
}

}  // namespace

std::unique_ptr<HandlerRunner> MakeHandlerRunner(const HandlerOptions& options,
                                                 const std::string& pipeline, int concurrency,
                                                 ConsumerObserver* observer,
                                                 HandlerRunner::Answered answered) {
  using Made = std::unique_ptr<HandlerRunner>;
  return std::visit(
      Overloaded{[](std::monostate) -> Made { return nullptr; },
                 [&](const HttpHandlerOptions& http) -> Made {
                   return std::make_unique<HttpRunner>(http, pipeline, concurrency, observer,
                                                       std::move(answered));
                 },
                 [&](const ExecHandlerOptions& exec) -> Made {
                   return std::make_unique<ExecRunner>(exec, pipeline, concurrency, observer,
                                                       std::move(answered));
                 },
                 [&](const JqHandlerOptions& jq) -> Made {
                   return std::make_unique<PoolRunner>(MakeJq(jq.program), JqThreads(concurrency),
                                                       observer, std::move(answered));
                 },
                 [&](const CustomHandlerOptions& custom) -> Made {
                   return std::make_unique<PoolRunner>(MakeCustom(custom), custom.threads, observer,
                                                       std::move(answered));
                 }},
      options.kind);
}

tl::expected<void, Error> CheckHandler(const HandlerOptions& options) {
  using Checked = tl::expected<void, Error>;
  const auto outcome = [](const auto& made) {
    return made ? Checked() : Checked(tl::unexpect, made.error());
  };
  return std::visit(
      Overloaded{
          [](const std::monostate&) { return Checked(); },
          [&](const HttpHandlerOptions& http) { return outcome(HttpTarget::Make(http, "")); },
          [&](const ExecHandlerOptions& exec) {
            return exec.command.empty() ? Checked() : outcome(FindProgram(exec.command.front()));
          },
          [&](const JqHandlerOptions& jq) { return outcome(CompileJq(jq.program)); },
          [](const CustomHandlerOptions&) { return Checked(); }},
      options.kind);
}

ClassMatch MatchClass(const std::vector<ErrorClass>& patterns, std::string_view error_class) {
  const auto names = [&](std::string_view pattern) {
    return std::find(patterns.begin(), patterns.end(), pattern) != patterns.end();
  };
  if (names(error_class)) return ClassMatch::kExact;
  const std::string hundred = HundredOf(error_class);
  return !hundred.empty() && names(hundred) ? ClassMatch::kHundred : ClassMatch::kNone;
}

bool MayRetry(const HandlerOptions& handler, const RetryOptions& retry,
              const HandlerFailure& failure) {
  if (!failure.retry) return false;
  const ClassMatch never = MatchClass(retry.never, failure.error_class);
  if (never != ClassMatch::kHundred) return never == ClassMatch::kNone;
  const auto* http = std::get_if<HttpHandlerOptions>(&handler.kind);
  return http != nullptr && MatchClass(http->retry_on, failure.error_class) == ClassMatch::kExact;
}

}  // namespace fencepost::consumer
