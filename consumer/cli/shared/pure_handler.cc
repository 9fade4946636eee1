#include "consumer/cli/shared/pure_handler.h"

#include <future>
#include <memory>
#include <utility>

namespace fencepost::cli {

std::optional<consumer::HandlerResult> AskPureHandler(const consumer::PipelineOptions& options,
                                                      consumer::HandlerCall call) {
  if (!options.handler.any() || options.handler.outside()) return std::nullopt;
  struct Asked {
    consumer::ConsumerObserver observer;
    std::promise<consumer::HandlerResult> answer;
    std::unique_ptr<consumer::HandlerRunner> runner;
  };
  auto asked = std::make_unique<Asked>();
  asked->runner = MakeHandlerRunner(options.handler, options.name, 1, &asked->observer,
                                    [to = asked.get()](consumer::HandlerAnswer answer) {
                                      to->answer.set_value(std::move(answer.result));
                                    });
  if (!asked->runner->Start()) return std::nullopt;
  auto answer = asked->answer.get_future();
  const auto limit = call.timeout + std::chrono::seconds(2);
  asked->runner->Call(std::move(call));
  if (answer.wait_for(limit) == std::future_status::ready) return answer.get();
  (void)asked.release();  // its end would be waited for, and a program that loops has none
  return std::nullopt;
}

}  // namespace fencepost::cli
