// A job that every host's cron starts at the same minute, and that runs once.
//   cron_once --redis A,B,C --job report --log runs.txt [--minute 2026-11-21T22:46] [--work-ms 100]
//             [--ttl-ms 10000]
// The name of the lock is job and minute; the mark says for a day that this one has run. The other
// hosts wait: if the one that runs it dies, one of them runs it.
#include <ctime>
#include <thread>

#include "arguments.h"

namespace {

std::string ThisMinute() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M", gmtime_r(&now, &parts));
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace example;
  const Arguments arguments(argc, argv);
  const std::string name = arguments.Get("job") + "/" + arguments.Get("minute", ThisMinute());
  const auto lock = ConnectOrExit(arguments, "cron");

  auto lease = lock->Acquire(name, {.wait = Millis(600'000)});
  if (!lease && lease.error().code == "done") {
    std::printf("%s has run\n", name.c_str());
    return 0;
  }
  if (!lease) {
    std::fprintf(stderr, "%s\n", lease.error().Line().c_str());
    return 75;
  }
  std::printf("running %s with token %llu\n", name.c_str(),
              static_cast<unsigned long long>(lease->token().value()));
  std::fflush(stdout);
  std::this_thread::sleep_for(Millis(arguments.Number("work-ms", 100)));  // the work
  if (!lease->valid()) return 76;  // frozen for longer than the ttl: another host has it now
  if (!AppendLine(arguments.Get("log"), name)) return 1;
  return lease->Done(0, std::chrono::hours(24)) ? 0 : 1;
}
