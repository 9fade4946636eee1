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
  // It gives back what is sent to it, and prints every frame.
  explicit HttpHandlerOverTls(const std::string& more = "--verbose") : port_(FreePort()) {
    server_ = std::make_unique<Process>(testing::ProcessOptions{
        .argv = {"nghttpd", "--echo-upload", "--verbose", more, "--address=127.0.0.1",
                 std::to_string(port_), made_.key(), made_.certificate()}});
    RequireWithin(
        10s, [&] { return server_->Output().find("listen") != std::string::npos; },
        "nghttpd to listen");
  }
  HttpHandlerOptions Trusting(const std::string& ca) const {
    return {.url = fmt::format("https://127.0.0.1:{}/charge", port_), .tls_ca = ca};
  }
  void StartTrusting(const std::string& ca) { Start({.kind = Trusting(ca)}, 64); }

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

class HttpHandlerWithACertificate : public HttpHandlerOverTls {
 protected:
  // The server ends a handshake in which it is shown no certificate.
  HttpHandlerWithACertificate() : HttpHandlerOverTls("--verify-client") {
    made_.Issue("client", "DNS:client");
  }
  HttpHandlerOptions With(const std::string& certificate, const std::string& key) const {
    HttpHandlerOptions options = Trusting(made_.ca());
    options.tls_certificate = certificate;
    options.tls_key = key;
    return options;
  }
};

TEST_F(HttpHandlerWithACertificate, ShowsItToTheServer) {
  StartTrusting(made_.ca());
  EXPECT_THAT(Told("{}"), StartsWith("connection, again: "));
  Start({.kind = With(made_.certificate("client"), made_.key("client"))});
  EXPECT_EQ(ValueOf("{}"), "{}");
}

TEST_F(HttpHandlerWithACertificate, SaysAtTheStartWhatIsWrongWithAFile) {
  const std::string certificate = made_.certificate("client");
  const std::string key = made_.key("client");
  const std::string text = made_.Write("text", "no PEM\n");
  const std::string empty = made_.Write("empty", "");
  const std::string locked = made_.Write("locked", "");
  made_.OpenSsl({"rsa", "-aes256", "-passout", "pass:secret", "-in", key, "-out", locked});
  const auto wrong = [this](const HttpHandlerOptions& options) {
    return StartError({.kind = options});
  };
  const auto said = [](const char* name, const std::string& file, const char* why) {
    return fmt::format("handler.http.tls.{}: {} cannot be used: {}", name, file, why);
  };
  EXPECT_EQ(wrong(Trusting("/nowhere")), said("ca", "/nowhere", "No such file or directory"));
  EXPECT_EQ(wrong(Trusting(empty)), said("ca", empty, "it is empty"));
  EXPECT_EQ(wrong(Trusting(text)), said("ca", text, "it is not PEM"));
  EXPECT_EQ(wrong(With("/nowhere", key)),
            said("certificate", "/nowhere", "No such file or directory"));
  EXPECT_EQ(wrong(With(text, key)), said("certificate", text, "it is not PEM"));
  EXPECT_EQ(wrong(With(certificate, text)), said("key", text, "it is not PEM"));
  EXPECT_EQ(wrong(With(certificate, locked)),
            said("key", locked, "it is encrypted; a key without passphrase is needed"));
  EXPECT_EQ(wrong(With(certificate, made_.key())),
            said("key", made_.key(), "it does not belong to tls.certificate"));
  EXPECT_EQ(wrong(With(certificate, "")),
            said("certificate", certificate, "certificate and key are given together"));
  EXPECT_EQ(wrong(With("", key)), said("key", key, "certificate and key are given together"));
}

}  // namespace
}  // namespace fencepost::consumer
