#include "tests/bench/benches.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "metrics/http/http_server.h"
#include "metrics/page.h"
#include "tests/bench/shared/turns.h"
#include "tests/support/http.h"

namespace fencepost::bench {
namespace {

constexpr int kPartitions = 1000;
constexpr int kLooks = 10;  // a turn

// `look` returns the page's size.
Figures Turn(const std::function<std::size_t()>& look) {
  std::vector<double> ms;
  std::size_t bytes = 0;
  for (int i = 0; i < kLooks; ++i) {
    const auto start = Clock::now();
    bytes = look();
    ms.push_back(SecondsSince(start) * 1e3);
  }
  const double worst = *std::max_element(ms.begin(), ms.end());
  return {{"median_ms", Median(std::move(ms))},
          {"worst_ms", worst},
          {"page_kib", static_cast<double>(bytes) / 1024}};
}

std::size_t Fetch(int port) {
  const auto answer = testing::HttpGet("127.0.0.1", port, "/metrics");
  if (answer.status != 200) throw std::runtime_error("/metrics did not answer");
  return answer.body.size();
}

}  // namespace

void RunScrapeBench(const Options& options) {
  metrics::MetricsPage page({"bench", "bench"});
  auto* const pipeline =
      page.Add({"orders", 5, std::chrono::seconds(10), "0123abcd"}, nullptr).value();
  for (int i = 0; i < kPartitions; ++i) pipeline->OnLag({"orders", i}, i * 7919);
  const auto well = [] { return metrics::ProbeResult{true, ""}; };
  const auto nothing = [] { return std::string(); };
  auto server = metrics::HttpServer::Start("127.0.0.1:0", {.metrics = [&] { return page.Render(); },
                                                           .live = well,
                                                           .ready = well,
                                                           .status = nothing,
                                                           .page = nothing,
                                                           .fragment = nothing});
  if (!server) throw std::runtime_error(server.error().Line());
  const int port = (*server)->port();
  TakeTurns({.bench = "scrape",
             .of = {{"partitions", kPartitions}},
             .words = "a page that is built, and one that is fetched",
             .rounds = options.rounds.value_or(5)},
            {{.name = "build", .turn = [&] { return Turn([&] { return page.Render().size(); }); }},
             {.name = "fetch", .turn = [&] { return Turn([&] { return Fetch(port); }); }}});
}

}  // namespace fencepost::bench
