// A pipeline with a handler in C++: greets everyone whose name comes in a JSON record, and writes
// the greeting to PostgreSQL, once for each record id.
//
//   fencepost_example_handler BROKER TOPIC REDIS,REDIS,REDIS DSN
//
// It needs a table greetings (name text, greeting text). Stop it with SIGTERM or Ctrl-C.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include "consumer/handlers/handler.h"
#include "consumer/worker/worker.h"

namespace {

using namespace fencepost::consumer;  // NOLINT: an example reads better so

// Each thread of the pool has its own.
class Greeter : public Handler {
 public:
  HandlerResult Handle(const HandlerRequest& request, const std::stop_token& stop) override {
    // Long work asks stop.stop_requested() now and then: the timeout, a lost lease, shutdown.
    if (stop.stop_requested()) {
      return tl::unexpected(HandlerFailure{.error_class = "cancelled", .text = "stopped"});
    }
    if (!request.record->value) {
      return tl::unexpected(
          HandlerFailure{.error_class = "nobody", .text = "no name", .retry = false});
    }
    // The same record may come again, with the same id and a higher token: say the same.
    const std::string name(*request.record->value);
    return HandlerValues{R"({"name":")" + name + R"(","greeting":"Hello, )" + name + R"("})"};
  }
};

PipelineOptions Pipeline(char** arguments) {
  PipelineOptions options;
  options.name = "greetings";
  options.kafka.brokers = {arguments[0]};
  options.kafka.topics = {arguments[1]};
  options.kafka.group = options.name;
  options.identity.record_id = {*Selector::Parse("value")};
  std::istringstream nodes(arguments[2]);
  for (std::string node; std::getline(nodes, node, ',');) {
    options.lock.redis.nodes.push_back(node);
  }
  options.handler.kind =
      CustomHandlerOptions{.make = [] { return std::make_unique<Greeter>(); }, .threads = 2};
  options.handler.idempotent = true;
  options.output = PostgresOptions{.dsn = arguments[3],
                                   .table = "greetings",
                                   .columns = {{"name", *Selector::Parse("json:/name")},
                                               {"greeting", *Selector::Parse("json:/greeting")}},
                                   .rules = {},
                                   .statement = "",
                                   .args = {}};
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s BROKER TOPIC REDIS,REDIS,REDIS DSN\n", argv[0]);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts

  fencepost::locking::LockObserver lock_observer;  // derive from these to count and log
  ConsumerObserver observer;
  Worker worker(Pipeline(argv + 1), "example", &lock_observer, &observer);
  worker.OnFailure([] { kill(getpid(), SIGTERM); });
  if (const auto started = worker.Start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().Line().c_str());
    return 2;
  }
  int signal = 0;
  sigwait(&signals, &signal);
  worker.RequestStop();
  const auto error = worker.Join();
  if (error) std::fprintf(stderr, "%s\n", error->Line().c_str());
  return error ? 1 : 0;
}
