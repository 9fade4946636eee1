#include "locking/redis/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace fencepost::locking {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kPlainScheme = "redis://";
constexpr std::string_view kTlsScheme = "rediss://";
constexpr std::string_view kDefaultPort = "6379";
constexpr std::string_view kForms =
    "write HOST:PORT, unix:/PATH, redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS";
constexpr std::size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;

using Parsed = tl::expected<NodeAddress, Error>;

tl::unexpected<Error> Bad(std::string_view text, std::string what, std::string_view hint = kForms) {
  return tl::unexpected(
      Error{"bad_config", std::move(what), RedactedAddress(text), std::string(hint)});
}

bool IsPort(std::string_view digits) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port > 0 && port <= 65535;
}

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    const std::string_view digits = text.substr(at + 1, 2);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return {};
    decoded += static_cast<char>(byte);
    at += 2;
  }
  return decoded;
}

Parsed ParseUnix(std::string_view text) {
  NodeAddress address;
  address.text = text;
  address.path = text.substr(kUnixPrefix.size());
  if (address.path.starts_with("//")) address.path.erase(0, 2);  // unix:///path
  if (!address.path.starts_with('/')) {
    return Bad(text, "the path of a Unix socket must be absolute");
  }
  if (address.path.size() > kMaxUnixPath)
    return Bad(text, "the path of the Unix socket is too long");
  return address;
}

// HOST, HOST:PORT, [V6] or [V6]:PORT; without a port the default one counts, where there is one.
Parsed ParseHost(std::string_view text, std::string_view authority, std::string_view default_port) {
  NodeAddress address;
  std::string_view host = authority;
  address.port = default_port;
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && !authority.ends_with(']');
  if (has_port) {
    host = authority.substr(0, colon);
    address.port = authority.substr(colon + 1);
    if (!IsPort(address.port)) return Bad(text, "the port is not a number from 1 to 65535");
  }
  if (address.port.empty()) return Bad(text, "the port is missing");
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Bad(text, "an IPv6 address must be in [brackets]");
  }
  if (host.empty()) return Bad(text, "the host is missing");
  const auto odd = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' ||
           std::string_view("/,@[]").find(c) != std::string_view::npos;
  };
  if (std::any_of(host.begin(), host.end(), odd)) return Bad(text, "this is not a host");
  address.host = host;
  return address;
}

// `userinfo`: USER, USER:PASSWORD or :PASSWORD.
Parsed WithLogin(NodeAddress address, std::string_view text, std::string_view userinfo) {
  const std::size_t colon = std::min(userinfo.find(':'), userinfo.size());
  auto username = PercentDecoded(userinfo.substr(0, colon));
  const bool has_password = colon < userinfo.size();
  auto password = PercentDecoded(has_password ? userinfo.substr(colon + 1) : std::string_view());
  if (!username || !password) {
    return Bad(text, "the user or password has a % that no two hexadecimal digits follow",
               "write % as %25");
  }
  if (has_password && password->empty()) return Bad(text, "the password of the URL is empty");
  address.username = std::move(username);
  if (has_password) address.password = std::move(password);
  return address;
}

Parsed ParseUrl(std::string_view text) {
  const bool tls = text.starts_with(kTlsScheme);
  const std::string_view rest = text.substr((tls ? kTlsScheme : kPlainScheme).size());
  const std::size_t at = rest.rfind('@');
  const bool has_login = at != std::string_view::npos;
  const std::string_view userinfo = has_login ? rest.substr(0, at) : std::string_view();
  std::string_view authority = has_login ? rest.substr(at + 1) : rest;
  if (userinfo.find_first_of("/?#@") != std::string_view::npos) {
    return Bad(text, "the user or password holds one of / ? # @ as it is",
               "write / as %2F, ? as %3F, # as %23, @ as %40");
  }
  if (authority.find_first_of("?#") != std::string_view::npos) {
    return Bad(text, "a query or fragment is not known here",
               "leave it out; TLS files and the timeout have options of their own");
  }
  const std::size_t slash = std::min(authority.find('/'), authority.size());
  const std::string_view path = authority.substr(slash);
  authority = authority.substr(0, slash);
  if (path.size() > 1 && path != "/0") {
    return Bad(text, "locks are kept in database 0 only", "end the URL after the port, or by /0");
  }
  auto address = ParseHost(text, authority, kDefaultPort);
  if (!address) return address;
  address->text = RedactedAddress(text);
  address->tls = tls;
  if (!has_login) return address;
  return WithLogin(std::move(*address), text, userinfo);
}

}  // namespace

Parsed ParseNodeAddress(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return ParseUnix(text);
  if (text.starts_with(kPlainScheme) || text.starts_with(kTlsScheme)) return ParseUrl(text);
  if (text.find("://") != std::string_view::npos) return Bad(text, "the scheme is not known");
  if (text.find('@') != std::string_view::npos) {
    return Bad(text, "a user and a password need a URL");
  }
  auto address = ParseHost(text, text, "");
  if (address) address->text = text;
  return address;
}

std::string ReachedBy(const NodeAddress& address) {
  if (!address.path.empty()) {
    return "unix:" + std::filesystem::path(address.path).lexically_normal().string();
  }
  std::string host = address.host;
  in6_addr ip{};
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, host.c_str(), &ip) == 1) {
    host = inet_ntop(AF_INET6, &ip, text, sizeof(text));
  }
  if (host.size() > 1 && host.ends_with('.')) host.pop_back();
  std::transform(host.begin(), host.end(), host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return host + ' ' + std::to_string(std::stoi(address.port));
}

std::string RedactedAddress(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return std::string(text);
  const std::size_t scheme = text.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  // The last one: a password may hold others, and a wrong text may hold it anywhere.
  const std::size_t at = text.rfind('@');
  const bool has_login = at != std::string_view::npos && at >= begin;
  const std::string_view rest = text.substr(has_login ? at + 1 : begin);
  std::string_view shown = rest.substr(0, rest.find_first_of("?#"));
  // Without an @, the text in the place of the port may be a password whose host is missing.
  const std::size_t slash = std::min(shown.find('/'), shown.size());
  const std::size_t colon = shown.substr(0, slash).rfind(':');
  const bool odd = !has_login && colon != std::string_view::npos && colon + 1 < slash &&
                   !IsPort(shown.substr(colon + 1, slash - colon - 1)) &&
                   !shown.substr(0, slash).ends_with(']');
  if (odd) return std::string(text.substr(0, begin)) + std::string(shown.substr(0, colon)) + ":***";
  return std::string(text.substr(0, begin)) + std::string(shown) +
         (shown.size() < rest.size() ? "?***" : "");
}

}  // namespace fencepost::locking
