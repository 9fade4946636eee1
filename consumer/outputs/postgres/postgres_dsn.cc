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

// Of the form key=value …: the keyword that it gives twice, which libpq passes over; or empty. A
// password with a blank that is not quoted may hold one: password=a host=b.
std::string GivenTwice(std::string_view dsn) {
  std::vector<std::string_view> seen;
  const auto blank = [](char c) {
    return std::string_view(" \t\n\r\v\f").find(c) != std::string_view::npos;
  };
  for (std::size_t at = 0; at < dsn.size();) {
    const std::size_t equals = dsn.find('=', at);
    if (equals == std::string_view::npos) break;
    std::string_view keyword = dsn.substr(at, equals - at);
    while (!keyword.empty() && blank(keyword.front())) keyword.remove_prefix(1);
    while (!keyword.empty() && blank(keyword.back())) keyword.remove_suffix(1);
    if (std::ranges::find(seen, keyword) != seen.end()) return std::string(keyword);
    seen.push_back(keyword);
    at = equals + 1;
    while (at < dsn.size() && blank(dsn[at])) ++at;
    const bool quoted = at < dsn.size() && dsn[at] == '\'';
    for (at += quoted ? 1 : 0; at < dsn.size(); ++at) {
      if (quoted ? dsn[at] == '\'' : blank(dsn[at])) break;
      if (dsn[at] == '\\') ++at;
    }
    ++at;
  }
  return "";
}

bool IsUrl(std::string_view dsn) {
  return dsn.starts_with("postgresql://") || dsn.starts_with("postgres://");
}

}  // namespace

std::string ConnectionString(const PostgresOptions& o) {
  std::vector<DsnPart> keys;
  for (const auto& [keyword, value] :
       {std::pair("host", o.host), std::pair("user", o.user),
        std::pair("port", o.port == 0 ? "" : std::to_string(o.port)),
        std::pair("dbname", o.database), std::pair("sslmode", o.sslmode)}) {
    if (!value.empty()) keys.push_back({keyword, value});
  }
  if (keys.empty()) return o.dsn;
  std::vector<DsnPart> parts = PartsOfDsn(o.dsn);
  if (parts.empty() && !o.dsn.empty()) return o.dsn;  // to be refused
  parts.insert(parts.end(), keys.begin(), keys.end());
  std::string all;
  for (const DsnPart& part : parts) {
    all += fmt::format("{}{}='", all.empty() ? "" : " ", part.keyword);
    for (const char c : part.value) {
      if (c == '\'' || c == '\\') all += '\\';
      all += c;
    }
    all += '\'';
  }
  return all;
}

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
  if (!IsUrl(dsn)) return false;
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
  if (const std::string twice = IsUrl(dsn) ? "" : GivenTwice(dsn); !twice.empty()) {
    return DsnProblem{fmt::format("it gives {} twice: quote a value that has blanks", twice), ""};
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
