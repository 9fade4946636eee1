#include "tests/bench/shared/servers.h"

#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/paths.h"

namespace fencepost::bench {

void ResetStore(testing::RedisServers& servers, std::size_t nodes) {
  std::vector<std::string> list = servers.addresses();
  list.resize(nodes);
  for (std::size_t node = 0; node < servers.size(); ++node) servers[node].Command({"FLUSHALL"});
  const auto init =
      testing::RunToEnd({.argv = {testing::FencepostBinary(), "locks", "init", "--force", "--redis",
                                  fmt::format("{}", fmt::join(list, ","))}});
  if (init.exit_code != 0) throw std::runtime_error("fencepost locks init: " + init.output);
}

std::vector<pid_t> Pids(testing::RedisServers& servers) {
  std::vector<pid_t> pids;
  for (std::size_t node = 0; node < servers.size(); ++node) pids.push_back(servers[node].pid());
  return pids;
}

// Deleted topics leave the disk soon: there are many in a long measurement.
Servers::Servers(bool fsync, int nodes)
    : kafka(
          {.config = {{"message.max.bytes", "4194304"}, {"log.segment.delete.delay.ms", "1000"}}}),
      redis(nodes),
      postgres({.fsync = fsync,
                .config = {"shared_buffers=256MB", "max_wal_size=4GB", "autovacuum=off",
                           "track_commit_timestamp=on"}}) {}

void Servers::NewEffects() {
  postgres.Exec("SET client_min_messages = warning; DROP TABLE IF EXISTS effects, more_effects");
  for (const char* table : {"effects", "more_effects"}) {
    postgres.Exec(fmt::format("CREATE TABLE {} (order_id text, amount bigint)", table));
  }
}

void Servers::Reset(std::size_t nodes) {
  postgres.Exec(
      "SET client_min_messages = warning;"
      " DROP TABLE IF EXISTS fencepost_ledger, fencepost_positions");
  postgres.Exec(testing::ReadFile(testing::SourcePath("deploy/postgres/ledger.sql")));
  NewEffects();
  postgres.Exec("CHECKPOINT");
  ResetStore(redis, nodes);
}

void Servers::CheckEffects(std::int64_t least, std::int64_t most, int tables) const {
  if (tables > 1 &&
      postgres.Value("SELECT count(*) FROM effects FULL JOIN more_effects USING (order_id, amount) "
                     "WHERE effects IS NULL OR more_effects IS NULL") != "0") {
    throw std::runtime_error("the two tables differ");
  }
  const auto row = postgres.Exec("SELECT count(*), count(DISTINCT order_id) FROM effects").at(0);
  const std::int64_t effects = std::stoll(row.at(0).value());
  const std::int64_t ids = std::stoll(row.at(1).value());
  if (effects == ids && least <= ids && ids <= most) return;
  throw std::runtime_error(
      fmt::format("{} effects for {} ids, where {} to {} were due", effects, ids, least, most));
}

double Servers::LastCommit() const {
  return std::stod(postgres.Value(
      "SELECT extract(epoch FROM max(pg_xact_commit_timestamp(xmin))) FROM effects"));
}

std::string Servers::NewTopic() { return fmt::format("orders-{}", ++topics_); }

CpuMeter Servers::Meter(CpuMeter::Seconds client) {
  CpuMeter meter;
  meter.Add("client_us", std::move(client));
  meter.Add("redis_us", [this] { return CpuSeconds(Pids(redis)); });
  meter.Add("postgres_us", [this] { return CpuSeconds(postgres.pid()); });
  meter.Add("kafka_us", [this] { return CpuSeconds(kafka.pid()); });
  return meter;
}

}  // namespace fencepost::bench
