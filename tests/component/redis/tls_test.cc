// TLS to a real node, with a CA made for the test.
#include <gtest/gtest.h>

#include "tests/component/redis/scripted_client.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::FreePort;
using fencepost::testing::RedisServer;
using fencepost::testing::RedisServerOptions;
using fencepost::testing::RunToEnd;
using fencepost::testing::TempDir;

// A CA, and a certificate of it for 127.0.0.1 and localhost.
class Certificates {
 public:
  Certificates() {
    OpenSsl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test CA",
             "-keyout", dir_.File("ca.key"), "-out", ca()});
    OpenSsl({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=node", "-keyout", key(), "-out",
             dir_.File("node.csr")});
    const std::string names = dir_.Write("names", "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    OpenSsl({"x509", "-req", "-in", dir_.File("node.csr"), "-CA", ca(), "-CAkey",
             dir_.File("ca.key"), "-CAcreateserial", "-days", "1", "-extfile", names, "-out",
             certificate()});
  }
  [[nodiscard]] std::string ca() const { return dir_.File("ca.pem"); }
  [[nodiscard]] std::string key() const { return dir_.File("node.key"); }
  [[nodiscard]] std::string certificate() const { return dir_.File("node.pem"); }

 private:
  void OpenSsl(std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    const auto finished = RunToEnd({.argv = words});
    if (finished.exit_code != 0) throw std::runtime_error(finished.output);
  }
  TempDir dir_;
};

std::shared_ptr<asio::ssl::context> Trusting(const std::string& ca) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  context->load_verify_file(ca);
  context->set_verify_mode(asio::ssl::verify_peer);
  return context;
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : tls_port(FreePort()), server(Options(certificates, tls_port)) {
    server.Command({"SET", std::string(kSentinelKey), SentinelText()});
  }
  static RedisServerOptions Options(const Certificates& made, int port) {
    RedisServerOptions options;
    options.config = {fmt::format("tls-port {}", port), "tls-auth-clients no",
                      "tls-ca-cert-file " + made.ca(), "tls-key-file " + made.key(),
                      "tls-cert-file " + made.certificate()};
    return options;
  }

  Certificates certificates;
  int tls_port;
  RedisServer server;
};

TEST_F(TlsTest, CarriesBatchesOfAnySize) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    ConnectionHarness harness(fmt::format("{}:{}", host, tls_port));
    harness.options.tls = Trusting(certificates.ca());
    harness.Start();
    ASSERT_TRUE(harness.RunUntilConnected());
    for (std::uint32_t lock = 0; lock < kMaxBatch; ++lock) {
      harness.client.Queue(OpKind::kRelease, lock);
    }
    ASSERT_TRUE(harness.RunUntilReplies(kMaxBatch));
    EXPECT_EQ(harness.client.replies.back().code, ReplyCode::kExpired);
  }
}

TEST_F(TlsTest, RefusesANodeThatAnotherCaSignedFor) {
  const Certificates others;
  ConnectionHarness harness(fmt::format("127.0.0.1:{}", tls_port));
  harness.options.tls = Trusting(others.ca());
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return harness.client.Noted("TLS: "); }, "the note"));
  EXPECT_TRUE(harness.client.infos.empty());
}

TEST_F(TlsTest, RefusesANodeWithAnotherName) {
  ConnectionHarness harness(fmt::format("127.0.0.2:{}", tls_port));
  harness.options.tls = Trusting(certificates.ca());
  server.Command({"CONFIG", "SET", "bind", "127.0.0.1 127.0.0.2"});
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return harness.client.Noted("TLS: "); }, "the note"));
  EXPECT_TRUE(harness.client.infos.empty());
}

TEST_F(TlsTest, SaysSoWhenANodeSpeaksTlsAndThePipelineDoesNot) {
  ConnectionHarness harness(fmt::format("127.0.0.1:{}", tls_port));
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return harness.client.Noted("redis_node_away"); }, "it"));
  EXPECT_TRUE(harness.client.infos.empty());
}

}  // namespace
}  // namespace fencepost::locking
