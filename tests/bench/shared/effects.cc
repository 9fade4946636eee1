#include "tests/bench/shared/effects.h"

#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::bench {

void CheckEffects(const testing::PostgresServer& postgres, std::int64_t least, std::int64_t most) {
  const auto row = postgres.Exec("SELECT count(*), count(DISTINCT order_id) FROM effects").at(0);
  const std::int64_t effects = std::stoll(row.at(0).value());
  const std::int64_t ids = std::stoll(row.at(1).value());
  if (effects == ids && least <= ids && ids <= most) return;
  throw std::runtime_error(
      fmt::format("{} effects for {} ids, where {} to {} were due", effects, ids, least, most));
}

double LastCommit(const testing::PostgresServer& postgres) {
  return std::stod(postgres.Value(
      "SELECT extract(epoch FROM max(pg_xact_commit_timestamp(xmin))) FROM effects"));
}

}  // namespace fencepost::bench
