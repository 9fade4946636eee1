// A critical section: many processes count in one file, one at a time.
//   wait_lock --redis A,B,C --file counter.txt [--rounds 10] [--ttl-ms 10000]
#include <fstream>

#include "arguments.h"

int main(int argc, char** argv) {
  using namespace example;
  const Arguments arguments(argc, argv);
  const std::string path = arguments.Get("file");
  const auto lock = ConnectOrExit(arguments, "wait-lock");

  for (int round = 0; round < arguments.Number("rounds", 10); ++round) {
    // Waits its turn for up to a minute, and takes nothing that ends in less than 500 ms.
    auto lease = lock->Acquire("counter", {.wait = Millis(60'000), .min_validity = Millis(500)});
    if (!lease) {
      std::fprintf(stderr, "%s\n", lease.error().Line().c_str());
      return 75;
    }
    long count = 0;
    std::ifstream(path) >> count;
    // The lease may be lost while we work: then somebody else is counting, and we must not write.
    if (lease->stop_token().stop_requested() || !lease->valid()) continue;
    std::ofstream(path) << count + 1 << "\n";
    std::printf("counted %ld\n", count + 1);
    std::fflush(stdout);
    lease->Release();
  }
}
