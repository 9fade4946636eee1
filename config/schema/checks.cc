#include "config/schema/checks.h"

#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "config/text/scalar.h"
#include "consumer/aws/aws_credentials.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/read_topics.h"
#include "locking/redis/address.h"

namespace fencepost::config {
namespace {

constexpr std::size_t kLongestName = 63;  // PostgreSQL cuts longer ones

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }

template <typename Predicate>
bool All(std::string_view text, Predicate predicate) {
  return std::all_of(text.begin(), text.end(), predicate);
}

bool IsVisible(char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; }

bool IsHostPort(std::string_view text, std::int64_t lowest) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (!bracketed && host.find_first_of(":[]") != std::string_view::npos) return false;
  const auto odd = [](char c) { return !IsVisible(c) || c == '/' || c == ',' || c == '@'; };
  if (std::any_of(host.begin(), host.end(), odd)) return false;
  const auto port = ParseInteger(text.substr(colon + 1));
  return port && *port >= lowest && *port <= 65535;
}

// What no database takes, however it is quoted.
std::string NameProblem(std::string_view text) {
  if (text.empty()) return "is empty";
  const auto fine = [](char c) { return IsVisible(c) || c == ' '; };
  return All(text, fine) ? "" : "has a control character";
}

std::string TableProblem(std::string_view text, std::string (*check)(std::string_view)) {
  const auto parts = consumer::SplitTableName(text);
  if (!parts) return fmt::format("is not a table: {}", parts.error());
  for (const std::string& part : *parts) {
    if (const std::string problem = check(part); !problem.empty()) return problem;
  }
  return "";
}

std::string RedactUserinfo(std::string_view url) {
  // The last one: a password may hold others, and a wrong URL may hold it anywhere.
  const std::size_t end = url.rfind('@');
  if (end == std::string_view::npos) return std::string(url);
  const std::size_t scheme = url.substr(0, end).find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  return fmt::format("{}***{}", url.substr(0, begin), url.substr(end));
}

// http://otel:4318 of http://otel:4318/path?key=…
std::string WithoutPath(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(0, url.find_first_of("/?#", host));
}

bool IsStatus(std::string_view text) {
  if (text.size() != 3 || text[0] < '1' || text[0] > '5') return false;
  return text.substr(1) == "xx" || (IsDigit(text[1]) && IsDigit(text[2]));
}

bool IsWord(std::string_view text) {
  return !text.empty() && All(text, [](char c) { return IsLower(c) || c == '_'; });
}

}  // namespace

std::string CheckNotEmpty(std::string_view text) { return text.empty() ? "is empty" : ""; }

std::string CheckPipelineName(std::string_view text) {
  const bool good = !text.empty() && text.size() <= kLongestName &&
                    All(text, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
  return good ? "" : "is not 1 to 63 of a-z, 0-9 and -";
}

std::string CheckTopic(std::string_view text) {
  const bool good =
      !text.empty() && text.size() <= 249 && text != "." && text != ".." && All(text, [](char c) {
        return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-';
      });
  return good ? "" : "is not a topic: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'";
}

std::string CheckTopicOrPattern(std::string_view text) {
  if (!consumer::IsPattern(text)) return CheckTopic(text);
  const std::string problem = consumer::ProblemOfPattern(text);
  return problem.empty() ? "" : "is not a pattern: " + problem;
}

std::string CheckHostPort(std::string_view text) {
  return IsHostPort(text, 1) ? "" : "is not HOST:PORT";
}

std::string_view BrokerProtocol(std::string_view text) {
  std::string upper(text.substr(0, std::min(text.find("://"), text.size())));
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return static_cast<char>(IsLower(c) ? c - 'a' + 'A' : c); });
  for (const std::string_view known : {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}) {
    if (upper == known && upper.size() < text.size()) return known;
  }
  return "";
}

std::string CheckBroker(std::string_view text) {
  const std::string_view protocol = BrokerProtocol(text);
  return CheckHostPort(protocol.empty() ? text : text.substr(protocol.size() + 3));
}

// Without a host: all addresses.
std::string CheckListenAddress(std::string_view text) {
  const std::string all = text.starts_with(':') ? "0.0.0.0" : "";
  return IsHostPort(all + std::string(text), 0) ? "" : "is not HOST:PORT, as in 0.0.0.0:9464";
}

std::string CheckHost(std::string_view text) {
  const auto odd = [](char c) {
    return !IsVisible(c) || std::string_view("/@,[]").find(c) != std::string_view::npos;
  };
  const auto colons = std::count(text.begin(), text.end(), ':');  // of IPv6 there are several
  const bool host = !text.empty() && std::none_of(text.begin(), text.end(), odd) && colons != 1;
  return host || text.starts_with('/') ? ""
                                       : "is no host and no /PATH of a Unix socket; port, user and "
                                         "password have keys of their own";
}

std::string CheckLockNode(std::string_view text) {
  const auto address = locking::ParseNodeAddress(text);
  if (address) return "";
  return fmt::format("is no lock node: {}; {}", address.error().what, address.error().hint);
}

std::string CheckDsn(std::string_view text) {
  const bool good = text.starts_with("postgresql://") || text.starts_with("postgres://") ||
                    text.find('=') != std::string_view::npos;
  return good ? "" : "is neither postgresql://… nor key=value …";
}

std::string CheckPostgresTable(std::string_view text) {
  return TableProblem(text, CheckPostgresColumn);
}

std::string CheckMysqlTable(std::string_view text) { return TableProblem(text, CheckMysqlColumn); }

std::string CheckSqliteTable(std::string_view text) {
  return TableProblem(text, CheckSqliteColumn);
}

std::string CheckPostgresColumn(std::string_view text) {
  if (const std::string problem = NameProblem(text); !problem.empty()) return problem;
  return text.size() <= kLongestName ? "" : "is longer than 63 bytes, which PostgreSQL would cut";
}

std::string CheckMysqlColumn(std::string_view text) {
  if (const std::string problem = NameProblem(text); !problem.empty()) return problem;
  const auto begins = [](char c) { return (c & 0xc0) != 0x80; };  // a character of UTF-8
  if (std::ranges::count_if(text, begins) > 64) return "is longer than 64 characters";
  return text.back() == ' ' ? "ends in a blank, which MySQL has no names with" : "";
}

std::string CheckSqliteColumn(std::string_view text) { return NameProblem(text); }

std::string CheckHttpUrl(std::string_view text) {
  const bool http = text.starts_with("http://");
  const bool known = http || text.starts_with("https://");
  const std::string_view rest = known ? text.substr(http ? 7 : 8) : std::string_view();
  const bool good = !rest.empty() && IsVisible(rest.front()) &&
                    std::string_view("/?#:").find(rest.front()) == std::string_view::npos &&
                    All(text, IsVisible);
  if (!good) return "is not http://HOST… or https://HOST…";
  // Where a password holds an @ or a /, its rest would be taken for a host or a path, and shown.
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  return rest.rfind('@') == authority.find('@') ? ""
                                                : "has an @ that does not end user and password: "
                                                  "write @ as %40, and / in a password as %2F";
}

std::string CheckCollectorUrl(std::string_view text) { return CheckHttpUrl(text); }

std::string WithoutSelectors(const std::string& url) {
  static const std::regex kSelector(R"((^|[^$])\{[^{}]*\})");  // ${…} is none
  return std::regex_replace(url, kSelector, "$1x");
}

std::string CheckHttpTemplate(std::string_view text) {
  return CheckHttpUrl(WithoutSelectors(std::string(text)));
}

std::string CheckHttpHeader(std::string_view text) {
  const auto token = [](char c) {
    return IsLetter(c) || IsDigit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && All(text, token) ? "" : "is not the name of an HTTP header";
}

std::string CheckBasicUser(std::string_view text) {
  if (text.empty()) return "is empty";
  return text.find(':') == std::string_view::npos ? "" : "has a colon, which no user of basic has";
}

std::string CheckBearer(std::string_view text) {
  const bool good = !text.empty() && All(text, IsVisible);
  return good ? "" : "is not a token: no blanks, and without the word Bearer";
}

std::string CheckRegion(std::string_view text) {
  return consumer::IsAwsRegion(text) ? "" : "is not a region, such as eu-west-1";
}

std::string CheckOpenPath(std::string_view text) {
  return text == "live" || text == "ready" ? "" : "is neither live nor ready";
}

std::string CheckStatus(std::string_view text) {
  return IsStatus(text) ? "" : "is not an HTTP status such as 404 or 4xx";
}

std::string CheckErrorClass(std::string_view text) {
  return IsStatus(text) || IsWord(text)
             ? ""
             : "is no class of errors; write 404, 4xx or a word such as timeout";
}

std::string CheckWord(std::string_view text) {
  return IsWord(text) ? "" : "is not a word of a-z and _, such as id_conflict";
}

std::string CheckPart(std::string_view text) {
  const bool good = !text.empty() && consumer::Selector::Parse(fmt::format("json:{}", text));
  return good ? ""
              : "is no JSON pointer of a part, such as /enriched; in a name ~ is ~0 and / is ~1";
}

std::string Redacted(std::string (*check)(std::string_view), const std::string& text) {
  if (check == CheckLockNode) return locking::RedactedAddress(text);
  const bool address = check == CheckHttpUrl || check == CheckHttpTemplate ||
                       check == CheckHostPort || check == CheckBroker ||
                       check == CheckListenAddress || check == CheckHost;
  if (check == CheckCollectorUrl) return WithoutPath(RedactUserinfo(text));
  return address ? RedactUserinfo(text) : text;
}

}  // namespace fencepost::config
