#include "locking/redis/address.h"

#include <sys/un.h>

#include <charconv>

namespace fencepost::locking {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;

Error Bad(std::string_view text, std::string what) {
  return {"bad_config", std::move(what), std::string(text), "write HOST:PORT or unix:/path"};
}

bool IsPort(std::string_view digits) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port > 0 && port <= 65535;
}

}  // namespace

tl::expected<NodeAddress, Error> ParseNodeAddress(std::string_view text) {
  NodeAddress address;
  address.text = text;
  if (text.starts_with(kUnixPrefix)) {
    address.path = text.substr(kUnixPrefix.size());
    if (address.path.empty() || address.path.front() != '/') {
      return tl::unexpected(Bad(text, "the path of a Unix socket must be absolute"));
    }
    if (address.path.size() > kMaxUnixPath) {
      return tl::unexpected(Bad(text, "the path of the Unix socket is too long"));
    }
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return tl::unexpected(Bad(text, "the port is missing"));
  std::string_view host = text.substr(0, colon);
  if (!IsPort(text.substr(colon + 1))) {
    return tl::unexpected(Bad(text, "the port is not a number from 1 to 65535"));
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return tl::unexpected(Bad(text, "an IPv6 address must stand in [brackets]"));
  }
  if (host.empty()) return tl::unexpected(Bad(text, "the host is missing"));
  address.host = host;
  address.port = text.substr(colon + 1);
  return address;
}

}  // namespace fencepost::locking
