// The http handler while a name server is silent. This program has a getaddrinfo of its own, which
// libcurl's threads call: it gives no answer for slow.test until the gate is open.
#include <dlfcn.h>
#include <netdb.h>

#include <latch>
#include <memory>
#include <mutex>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::StubServer;

struct Gate {
  std::latch asked{1};
  std::latch open{1};
};

std::mutex gate_mutex;
std::shared_ptr<Gate> gate;  // that of the test that runs; a thread that waits keeps its own

std::shared_ptr<Gate> CurrentGate() {
  const std::lock_guard guard(gate_mutex);
  return gate;
}

class HttpResolver : public RunnerFixture {
 protected:
  HttpResolver() {
    const std::lock_guard guard(gate_mutex);
    gate = gate_;
  }
  ~HttpResolver() override { gate_->open.count_down(); }

  void StartWith(const std::string& host) {
    const std::string port = server_.Url("").substr(server_.Url("").rfind(':'));
    Start({.kind = HttpHandlerOptions{.url = "http://" + host + port + "/"}}, 1);
  }

  StubServer server_{[](const StubServer::Request&) { return StubServer::Answer{.body = "1"}; }};
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

TEST_F(HttpResolver, ThatIsSilentCostsACallItsTimeoutAndNoMore) {
  StartWith("slow.test");
  EXPECT_EQ(FailureOf({.value = "1", .timeout = 100ms}).error_class, "timeout");
}

TEST_F(HttpResolver, ThatIsSilentDoesNotHoldACancelledCall) {
  StartWith("slow.test");
  const auto id = Call("1");
  gate_->asked.wait();
  Cancel(id);
  EXPECT_EQ(ClassOf(id), "cancelled");
}

TEST_F(HttpResolver, IsAskedForOtherNamesAsEver) {
  StartWith("localhost");
  EXPECT_EQ(ValueOf("1"), "1");
}

}  // namespace
}  // namespace fencepost::consumer

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto next = reinterpret_cast<GetAddrInfo>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || std::string_view(node) != "slow.test") {
    return next(node, service, hints, result);
  }
  const auto gate = fencepost::consumer::CurrentGate();
  if (!gate->asked.try_wait()) gate->asked.count_down();
  gate->open.wait();
  return EAI_AGAIN;
}
