#include "consumer/worker/make_handler.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "consumer/handlers/exec/exec_runner.h"
#include "consumer/handlers/http/http_runner.h"
#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/handlers/pool_runner.h"

namespace fencepost::consumer {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
// Clang 16 does not deduce it by itself.
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

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

}  // namespace fencepost::consumer
