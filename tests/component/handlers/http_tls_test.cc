// The http handler over TLS, with a server that speaks HTTP/2 and nothing else.
#include <fmt/format.h>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/certificates.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::FreePort;
using fencepost::testing::Process;
using fencepost::testing::RequireWithin;
using fencepost::testing::WaitUntil;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpHandlerOverTls : public RunnerFixture {
 protected:
  HttpHandlerOverTls() : port_(FreePort()) {
    // It gives back what is sent to it, and prints every frame.
    server_ = std::make_unique<Process>(testing::ProcessOptions{
        .argv = {"nghttpd", "--echo-upload", "--verbose", "--address=127.0.0.1",
                 std::to_string(port_), made_.key(), made_.certificate()}});
    RequireWithin(
        10s, [&] { return server_->Output().find("listen") != std::string::npos; },
        "nghttpd to listen");
  }
  void StartTrusting(const std::string& ca) {
    Start({.kind = HttpHandlerOptions{.url = fmt::format("https://127.0.0.1:{}/charge", port_),
                                      .tls_ca = ca}},
          64);
  }

  testing::Certificates made_;
  int port_;
  std::unique_ptr<Process> server_;
};

TEST_F(HttpHandlerOverTls, SharesOneConnectionByHttp2) {
  StartTrusting(made_.ca());
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 50; ++i)
    ids.push_back(Call({.value = std::to_string(i), .record_id = "o 1"}));
  for (int i = 0; i < 50; ++i) {
    const HandlerResult result = AnswerTo(ids[i]).result;
    ASSERT_TRUE(result.has_value()) << result.error().text;
    EXPECT_EQ(result->front(), std::to_string(i));
  }
  ASSERT_TRUE(WaitUntil(
      10s, [&] { return server_->Output().find("idempotency-key: o%201") != std::string::npos; }));
  EXPECT_THAT(server_->Output(), HasSubstr("fencing-token: 9007199254740993"));
  EXPECT_THAT(server_->Output(), HasSubstr("x-fencepost-source: orders/3/42"));
  EXPECT_THAT(server_->Output(), HasSubstr("[id=1]"));
  EXPECT_THAT(server_->Output(), Not(HasSubstr("[id=2]")));
}

TEST_F(HttpHandlerOverTls, TrustsNobodyWhomTheCaDoesNotKnow) {
  StartTrusting("");
  EXPECT_THAT(Told("{}"), AllOf(StartsWith("connection, again: "), HasSubstr("certificate")));
}

}  // namespace
}  // namespace fencepost::consumer
