#include "tests/bench/benches.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/bench/floors/floors.h"
#include "tests/bench/floors/http_server.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"
#include "tests/support/paths.h"

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

// A worker's way to a file, in blocks: what calls cost without the database and with few locks.
Figures ToFile(Servers& servers, Run run) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("bench-{}", getpid());
  run.by = "block";
  run.set.push_back("guarantee=at-least-once");
  run.set.push_back(fmt::format(R"(output={{"file":{{"path":"{}"}}}})", path.string()));
  run.effects = 0;  // in the table
  const RunResult result = RunWorkers(servers, run);
  std::filesystem::remove(path);
  return Figures{{"records_per_s", result.processed_per_s}} + result.cpu;
}

Run InBatches(Run run) {
  run.set.push_back(R"(handler.http.batch={"max_records":50,"linger":"5ms"})");
  return run;
}

// A function of one record in Python, which answers with its value.
constexpr const char* kPython =
    "import fencepost\n"
    "@fencepost.handler\n"
    "def same(record):\n"
    "    return record.value\n"
    "fencepost.run(same)\n";

Run InPython(Run run) {
  run.handler_url.clear();
  run.server = {};
  run.set.push_back(fmt::format(
      R"(handler={{"exec":{{"command":["env","PYTHONPATH={}","python3","-c",{}],)"
      R"("processes":4,"idempotent":true,"batch":{{"max_records":100,"linger":"5ms"}}}}}})",
      testing::SourcePath("consumer/handlers/exec/python"), nlohmann::json(kPython).dump()));
  return run;
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
  const auto worker = [&servers](const Run& how) {
    return [&servers, how] {
      servers.Reset();
      return RunWorkers(servers, how).Told();
    };
  };
  const auto to_file = [&servers](const Run& how) {
    return [&servers, how] {
      servers.Reset();
      return ToFile(servers, how);
    };
  };
  TakeTurns({.bench = "handler",
             .of = Of(options, {{"records", records}, {"concurrency", concurrency}}),
             .words = "floor: libcurl's multi interface alone; to a file: in blocks; Python: "
                      "4 processes, batches of 100",
             .rounds = options.rounds.value_or(5),
             .references_only = options.floor_only},
            {{.name = "floor",
              .reference = true,
              .turn = [&] { return Floor(servers, server, concurrency, records); }},
             {.name = "to PostgreSQL, one by one", .reference = true, .turn = worker(run)},
             {.name = "to PostgreSQL, batches of 50", .turn = worker(InBatches(run))},
             {.name = "to PostgreSQL, Python", .turn = worker(InPython(run))},
             {.name = "to a file, one by one", .reference = true, .turn = to_file(run)},
             {.name = "to a file, batches of 50", .turn = to_file(InBatches(run))},
             {.name = "to a file, Python", .turn = to_file(InPython(run))}});
}

}  // namespace fencepost::bench
