// One run of shipped workers over a stream of its own, from Kafka to PostgreSQL.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/shared/servers.h"
#include "tests/bench/shared/stream.h"
#include "tests/bench/shared/workers.h"

namespace fencepost::bench {

struct Run {
  std::string by = "id";  // PipelineFile::by
  int workers = 1;
  StreamOptions stream{};            // its topic is chosen
  std::vector<std::string> nodes{};  // empty: all of Servers
  std::string handler_url{};
  std::vector<std::string> set{};
  int tables = 1;                         // PipelineFile::tables
  std::optional<double> limit_s{};        // then the workers are stopped with what they have done
  std::optional<std::int64_t> effects{};  // due at the end, where it is not one a record
  std::function<void()> before_open{};
  std::function<void(Workers&)> at_end{};  // all is done, and the workers still run
  CpuMeter::Seconds server{};              // of the handler's server
};

struct RunResult {
  std::int64_t processed = 0;
  // From the commit that opens the topic to that of the last effect; 0 with a limit.
  double per_s = 0;
  // From that commit to the last look at the workers' metrics, every 200 ms: also with a limit, and
  // where the last effect is not the end.
  double processed_per_s = 0;
  Figures cpu;

  [[nodiscard]] Figures Told() const { return Figures{{"records_per_s", per_s}} + cpu; }
};

// On servers that were Reset. Checks that each id has exactly one effect. Throws on any trouble.
RunResult RunWorkers(Servers& servers, Run run);

}  // namespace fencepost::bench
