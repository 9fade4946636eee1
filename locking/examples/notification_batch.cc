// Workers share a list of notifications: each takes what is free, nobody sends what another sends.
//   notification_batch --redis A,B,C --out sent.txt [--worker w] [--items 200] [--batch 20]
//                      [--send-ms 0] [--ttl-ms 10000]
// A worker killed between sending and the mark leaves its last batch to be sent again: at most
// --batch of them. Where that is too much, see exactly_once_stream.cc.
#include <algorithm>
#include <thread>

#include "arguments.h"

int main(int argc, char** argv) {
  using namespace example;
  const Arguments arguments(argc, argv);
  const std::string out = arguments.Get("out");
  const std::string worker = arguments.Get("worker", "w");
  const auto lock = ConnectOrExit(arguments, "notifications");

  std::vector<std::string> pending;
  for (int i = 0; i < arguments.Number("items", 200); ++i) {
    pending.push_back("notification-" + std::to_string(i));
  }
  const auto most = static_cast<std::size_t>(arguments.Number("batch", 20));
  while (!pending.empty()) {
    Batch batch = AcquireFree(*lock, pending, {.most = most});
    std::vector<std::string> sent;
    std::vector<Lease> to_mark;  // what was not sent is given back with the batch
    for (Lease& lease : batch.leases) {
      if (!lease.valid()) continue;  // too slow: it is another's
      std::this_thread::sleep_for(Millis(arguments.Number("send-ms", 0)));
      if (!AppendLine(out, lease.name() + " " + worker)) continue;
      sent.push_back(lease.name());
      to_mark.push_back(std::move(lease));
    }
    for (const auto& done : Lease::DoneAll(to_mark, 0, Millis(3'600'000))) {
      if (!done) std::fprintf(stderr, "%s\n", done.error().Line().c_str());
    }
    for (const Batch::Left& left : batch.left) {
      if (left.error.code == "done") sent.push_back(left.name);
    }
    std::erase_if(pending, [&](const std::string& name) {
      return std::find(sent.begin(), sent.end(), name) != sent.end();
    });
    std::printf("%zu sent or done, %zu pending\n", sent.size(), pending.size());
    std::fflush(stdout);
    if (batch.leases.empty()) std::this_thread::sleep_for(Millis(50));  // others have the rest
  }
}
