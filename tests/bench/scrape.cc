#include "tests/bench/scrape.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "metrics/http/http_server.h"
#include "metrics/page.h"
#include "tests/bench/measure.h"
#include "tests/support/http.h"

namespace fencepost::bench {
namespace {

void Show(const char* what, const ScrapeBench& options, std::vector<double> seconds,
          std::size_t bytes) {
  std::sort(seconds.begin(), seconds.end());
  const double median = Median(seconds) * 1e3;
  const double worst = seconds.back() * 1e3;
  std::fprintf(stderr, "%-8s %6d partitions %8zu bytes  median %.2f ms  worst %.2f ms\n", what,
               options.partitions, bytes, median, worst);
  std::printf(
      "{\"bench\":\"scrape\",\"what\":\"%s\",\"partitions\":%d,\"bytes\":%zu,"
      "\"median_ms\":%.3f,\"worst_ms\":%.3f,\"load\":%.2f}\n",
      what, options.partitions, bytes, median, worst, LoadAverage());
}

}  // namespace

void RunScrapeBench(const ScrapeBench& options) {
  metrics::MetricsPage page({"bench", "bench"});
  auto* const pipeline =
      page.Add({"orders", 5, std::chrono::seconds(10), "0123abcd"}, nullptr).value();
  for (int i = 0; i < options.partitions; ++i) pipeline->OnLag({"orders", i}, i * 7919);
  std::vector<double> rendered;
  std::size_t bytes = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const auto start = Clock::now();
    bytes = page.Render().size();
    rendered.push_back(SecondsSince(start));
  }
  Show("render", options, std::move(rendered), bytes);

  auto server =
      metrics::HttpServer::Start("127.0.0.1:0", {.metrics = [&] { return page.Render(); },
                                                 .live =
                                                     [] {
                                                       return metrics::ProbeResult{true, ""};
                                                     },
                                                 .ready =
                                                     [] {
                                                       return metrics::ProbeResult{true, ""};
                                                     },
                                                 .status = [] { return std::string(); },
                                                 .page = [] { return std::string(); },
                                                 .event = [] { return std::string(); }});
  if (!server) throw std::runtime_error(server.error().Line());
  const std::string bound = (*server)->bound();
  const int port = std::stoi(bound.substr(bound.rfind(':') + 1));
  std::vector<double> fetched;
  for (int round = 0; round < options.rounds; ++round) {
    const auto start = Clock::now();
    const auto answer = testing::HttpGet("127.0.0.1", port, "/metrics");
    fetched.push_back(SecondsSince(start));
    if (answer.status != 200) throw std::runtime_error("/metrics did not answer");
    bytes = answer.body.size();
  }
  Show("fetch", options, std::move(fetched), bytes);
}

}  // namespace fencepost::bench
