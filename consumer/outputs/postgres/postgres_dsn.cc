#include "consumer/outputs/postgres/postgres_dsn.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "consumer/outputs/failure_text.h"

namespace fencepost::consumer {

namespace {

// A list with commas, in which an empty one is the default.
bool ArePorts(std::string_view list) {
  while (!list.empty()) {
    const std::string_view port = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), port.size() + 1));
    int number = 0;
    const auto [end, bad] = std::from_chars(port.data(), port.data() + port.size(), number);
    const bool good =
        bad == std::errc() && end == port.data() + port.size() && number >= 1 && number <= 65535;
    if (!good && !port.empty()) return false;
  }
  return true;
}

}  // namespace

std::vector<DsnPart> PartsOfDsn(const std::string& dsn) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(dsn.c_str(), nullptr), &PQconninfoFree);
  std::vector<DsnPart> parts;
  for (const PQconninfoOption* o = options.get(); o != nullptr && o->keyword != nullptr; ++o) {
    if (o->val != nullptr) parts.push_back({o->keyword, o->val, o->dispchar[0] == '*'});
  }
  return parts;
}

std::size_t HostsInDsn(const std::string& dsn) {
  const std::vector<DsnPart> parts = PartsOfDsn(dsn);
  std::size_t hosts = parts.empty() ? 0 : 1;
  for (const DsnPart& part : parts) {
    if (part.keyword != "host" && part.keyword != "hostaddr") continue;
    hosts = std::max(hosts, static_cast<std::size_t>(std::ranges::count(part.value, ',')) + 1);
  }
  return hosts;
}

bool LoginIsAmbiguous(const std::string& dsn) {
  if (!dsn.starts_with("postgresql://") && !dsn.starts_with("postgres://")) return false;
  const std::string_view rest = std::string_view(dsn).substr(dsn.find("://") + 3);
  return rest.rfind('@') != rest.substr(0, rest.find('/')).find('@');
}

std::optional<DsnProblem> ProblemOfDsn(const std::string& dsn) {
  if (LoginIsAmbiguous(dsn)) {
    return DsnProblem{
        "it has an @ that does not end user and password: write @ as %40, in options too, and / in "
        "a password as %2F",
        ""};
  }
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(dsn.c_str(), &error), &PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> said(error, &PQfreemem);
  if (!options) {
    const std::string_view text = said == nullptr ? "" : said.get();
    for (const std::string_view begins :
         {"invalid connection option \"", "invalid URI query parameter: \""}) {
      if (!text.starts_with(begins)) continue;
      const std::string_view rest = text.substr(begins.size());
      return DsnProblem{"it has an option that libpq does not know",
                        std::string(rest.substr(0, rest.find('"')))};
    }
    return DsnProblem{"libpq cannot read it: " + BeforeQuotes(text.substr(0, text.find('\n'))), ""};
  }
  for (const DsnPart& part : PartsOfDsn(dsn)) {
    if (part.keyword == "port" && !ArePorts(part.value)) {
      return DsnProblem{"its port is none from 1 to 65535", ""};
    }
  }
  return std::nullopt;
}

std::vector<std::string> DsnOptions() {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconndefaults(),
                                                                             &PQconninfoFree);
  std::vector<std::string> names;
  for (const PQconninfoOption* o = options.get(); o != nullptr && o->keyword != nullptr; ++o) {
    names.emplace_back(o->keyword);
  }
  return names;
}

std::string PostgresClientVersion() {
  const int version = PQlibVersion();
  return fmt::format("{}.{}", version / 10'000, version % 10'000);
}

}  // namespace fencepost::consumer
