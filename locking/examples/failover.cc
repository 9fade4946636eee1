// One leader at a time among many processes; the others wait. The leader writes to a journal.
//   failover --redis A,B,C --journal journal.txt [--worker w] [--name leader] [--ttl-ms 10000]
//            [--resign-after-ms 0]
// Runs until SIGTERM. Each line of the journal begins with the term's fencing token: its reader
// skips a line whose token is below one that it has seen (a leader that was frozen, and wrote on).
#include <atomic>
#include <csignal>
#include <thread>

#include "arguments.h"

namespace {

std::atomic<bool> stop{false};

unsigned long long Nanoseconds(fencepost::locking::Instant at) {
  return static_cast<unsigned long long>(at.time_since_epoch().count());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace example;
  const Arguments arguments(argc, argv);
  std::signal(SIGTERM, [](int) { stop = true; });
  const std::string journal = arguments.Get("journal");
  const std::string worker = arguments.Get("worker", "w");
  const Millis resign_after(arguments.Number("resign-after-ms", 0));
  const auto lock = ConnectOrExit(arguments, "failover");

  const auto tell = [](const char* what, const Term& term, const std::string& why) {
    std::printf("%s %llu %llu %s\n", what, static_cast<unsigned long long>(term.token.value()),
                Nanoseconds(BootClock::now()), why.c_str());
    std::fflush(stdout);
  };
  std::jthread leading;
  ElectionOptions options;
  options.depose_before = lock->lock_options().ttl / 4;
  options.on_elected = [&](const Term& term) {
    tell("elected", term, "");
    leading = std::jthread([&, term] {
      while (!term.deposed.stop_requested()) {
        std::this_thread::sleep_for(Millis(50));
        AppendLine(journal, std::to_string(term.token.value()) + " " + worker);
      }
    });
  };
  options.on_deposed = [&](const Term& term, const fencepost::Error& why) {
    leading.join();  // it has stopped writing before another begins
    tell("deposed", term, why.code);
  };
  options.on_waiting = [](const fencepost::Error& why) {
    std::fprintf(stderr, "waiting: %s\n", why.Line().c_str());
  };
  Election election(*lock, arguments.Get("name", "leader"), options);
  if (auto started = election.Start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().Line().c_str());
    return 2;
  }
  for (Millis led{0}; !stop; led += Millis(20)) {
    std::this_thread::sleep_for(Millis(20));
    if (!election.IsLeader()) led = Millis(0);
    if (resign_after > Millis(0) && led >= resign_after) election.Resign();
  }
  election.Stop();
}
