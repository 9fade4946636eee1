#include "consumer/outputs/postgres/postgres_dsn.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <libpq-fe.h>

namespace fencepost::consumer {

std::size_t HostsInDsn(const std::string& dsn) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(dsn.c_str(), nullptr), &PQconninfoFree);
  if (!options) return 0;
  std::size_t hosts = 1;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const std::string_view keyword = option->keyword;
    if (option->val == nullptr || (keyword != "host" && keyword != "hostaddr")) continue;
    const std::string_view list = option->val;
    hosts = std::max(hosts, static_cast<std::size_t>(std::ranges::count(list, ',')) + 1);
  }
  return hosts;
}

std::string PostgresClientVersion() {
  const int version = PQlibVersion();
  return fmt::format("{}.{}", version / 10'000, version % 10'000);
}

}  // namespace fencepost::consumer
