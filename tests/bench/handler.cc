#include "tests/bench/benches.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "tests/bench/floors/floors.h"
#include "tests/bench/floors/http_server.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

constexpr std::size_t kBytes = 256;

Figures Floor(Servers& servers, const HttpServerProcess& server, int concurrency,
              std::int64_t records) {
  CpuMeter meter = servers.Meter(&OwnCpuSeconds);
  meter.Add("server_us", [&server] { return CpuSeconds(server.pid()); });
  meter.Start();
  const auto start = Clock::now();
  RunHttpFloor(
      {.url = server.url(), .concurrency = concurrency, .records = records, .bytes = kBytes});
  const auto count = static_cast<double>(records);
  return Figures{{"records_per_s", count / SecondsSince(start)}} + meter.PerRecord(count);
}

// The same to a file: what calls cost without the database.
Figures ToFile(Servers& servers, Run run) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("bench-{}", getpid());
  run.set.push_back("guarantee=at-least-once");
  run.set.push_back(fmt::format(R"(output={{"file":{{"path":"{}"}}}})", path.string()));
  run.effects = 0;  // in the table
  const RunResult result = RunWorkers(servers, run);
  std::filesystem::remove(path);
  return Figures{{"records_per_s", result.processed_per_s}} + result.cpu;
}

}  // namespace

void RunHandlerBench(const Options& options) {
  Servers servers(options.fsync);
  const HttpServerProcess server;
  const std::int64_t records = options.records.value_or(100'000);
  const int concurrency = options.in_flight.empty() ? 64 : options.in_flight.front();
  Run run{.by = "position",
          .stream = {.records = records, .bytes = kBytes},
          .handler_url = server.url(),
          .set = options.set,
          .server = [&server] { return CpuSeconds(server.pid()); }};
  run.set.push_back(fmt::format("processing.concurrency={}", concurrency));
  TakeTurns({.bench = "handler",
             .of = Of(options, {{"records", records}, {"concurrency", concurrency}}),
             .words = "floor: libcurl's multi interface alone",
             .rounds = options.rounds.value_or(5),
             .references_only = options.floor_only},
            {{.name = "floor",
              .reference = true,
              .turn = [&] { return Floor(servers, server, concurrency, records); }},
             {.name = "1 worker",
              .turn =
                  [&] {
                    servers.Reset();
                    return RunWorkers(servers, run).Told();
                  }},
             {.name = "1 worker, to a file", .turn = [&] {
                servers.Reset();
                return ToFile(servers, run);
              }}});
}

}  // namespace fencepost::bench
