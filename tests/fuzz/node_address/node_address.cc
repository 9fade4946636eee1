// The address of a lock node: what is shown of it holds no password, whatever is wrong with it, and
// an address that is taken is taken again without its login.
#include "locking/redis/address.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace locking;

constexpr std::string_view kSecret = "hunter2";

void CheckHidden(const std::string& text) {
  const auto hides = [](std::string_view shown) {
    return shown.find(kSecret) == std::string_view::npos;
  };
  FENCEPOST_CHECK(hides(RedactedAddress(text)), Shown(text));
  const auto address = ParseNodeAddress(text);
  FENCEPOST_CHECK(address ? hides(address->text) : hides(address.error().Line()), Shown(text));
}

}  // namespace

void OneInput(std::string_view input) {
  const std::string text(input);
  const auto address = ParseNodeAddress(text);
  if (address) {
    FENCEPOST_CHECK(address->host.empty() != address->path.empty(), Shown(text));
    FENCEPOST_CHECK(!ReachedBy(*address).empty(), Shown(text));
    const auto again = ParseNodeAddress(address->text);
    FENCEPOST_CHECK(again && again->host == address->host && again->port == address->port,
                    Shown(text));
    FENCEPOST_CHECK(again->path == address->path && again->tls == address->tls, Shown(text));
    FENCEPOST_CHECK(!again->username && !again->password, Shown(text));
    FENCEPOST_CHECK(ReachedBy(*again) == ReachedBy(*address), Shown(text));
  }
  if (text.find_first_of("@/") != std::string::npos) return;
  if (text.find(kSecret) != std::string::npos) return;  // it may be the host
  for (const std::string scheme : {"redis://", "rediss://"}) {
    CheckHidden(scheme + "u:" + std::string(kSecret) + "@" + text);
    CheckHidden(scheme + "u:" + text + std::string(kSecret) + "@host:1");
    CheckHidden(scheme + ":" + std::string(kSecret) + text + "@host:1");
  }
}

}  // namespace fencepost::fuzz
