// TLS to a real node, with certificates made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "locking/redis/engine/access.h"
#include "tests/component/redis/scripted_client.h"
#include "tests/support/certificates.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::Certificates;
using fencepost::testing::FreePort;
using fencepost::testing::RedisServer;
using fencepost::testing::RedisServerOptions;
using ::testing::HasSubstr;

// Made once: keys take a while.
Certificates& Trusted() {
  static Certificates certificates;
  return certificates;
}

// A node with a TLS port, and connections to it.
class TlsNode {
 public:
  TlsNode(const Certificates& made, const std::string& clients = "no",
          std::vector<std::string> more = {})
      : port(FreePort()), server(Options(made, port, clients, std::move(more))) {
    server.Command({"SET", std::string(kSentinelKey), SentinelText()});
  }
  static RedisServerOptions Options(const Certificates& made, int port, const std::string& clients,
                                    std::vector<std::string> more) {
    RedisServerOptions options;
    options.config = std::move(more);
    for (const std::string& line : {fmt::format("tls-port {}", port), "tls-auth-clients " + clients,
                                    "tls-ca-cert-file " + made.ca(), "tls-key-file " + made.key(),
                                    "tls-cert-file " + made.certificate()}) {
      options.config.push_back(line);
    }
    return options;
  }

  // Starts a connection that goes by these options; `host`: as the node is named.
  ConnectionHarness& Connect(RedisOptions redis, const std::string& host = "127.0.0.1") {
    redis.nodes = {fmt::format("rediss://{}:{}", host, port)};
    harness.emplace("127.0.0.1:1");
    harness->options = MakeConnections(redis, {}).at(0);
    harness->Start();
    return *harness;
  }
  ::testing::AssertionResult Connects(const RedisOptions& redis,
                                      const std::string& host = "127.0.0.1") {
    return Connect(redis, host).RunUntilConnected();
  }
  // Why there is no connection, as the log says it.
  std::string WhyNot(const RedisOptions& redis, const std::string& host = "127.0.0.1") {
    ConnectionHarness& failing = Connect(redis, host);
    EXPECT_TRUE(failing.RunUntil([&] { return !failing.client.notes.empty(); }, "a note"));
    EXPECT_TRUE(failing.client.infos.empty()) << "nothing was asked of the node";
    EXPECT_FALSE(failing.client.errors.empty());
    return failing.client.notes.empty() ? "" : failing.client.notes.front();
  }

  int port;
  RedisServer server;
  std::optional<ConnectionHarness> harness;
};

TEST(Tls, CarriesBatchesOfAnySize) {
  TlsNode node(Trusted());
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    ASSERT_TRUE(node.Connects({.tls_ca = Trusted().ca()}, host));
    ConnectionHarness& harness = *node.harness;
    for (std::uint32_t lock = 0; lock < kMaxBatch; ++lock) {
      harness.client.Queue(OpKind::kRelease, lock);
    }
    ASSERT_TRUE(harness.RunUntilReplies(kMaxBatch));
    EXPECT_EQ(harness.client.replies.back().code, ReplyCode::kExpired);
  }
}

TEST(Tls, RefusesANodeThatAnUnknownCaSignedFor) {
  const Certificates others;
  TlsNode node(Trusted());
  const std::string why = node.WhyNot({.tls_ca = others.ca()});
  EXPECT_THAT(why, HasSubstr("signed by a CA that is not trusted here; check lock.redis.tls.ca"));
  EXPECT_THAT(why, HasSubstr(fmt::format("redis_node_away: rediss://127.0.0.1:{}", node.port)));
  // The system's CAs have not signed for it either.
  EXPECT_THAT(node.WhyNot({}), HasSubstr("signed by a CA that is not trusted here"));
}

TEST(Tls, ChecksTheNameOrTheAddressOfTheNode) {
  TlsNode node(Trusted());
  node.server.Command({"CONFIG", "SET", "bind", "127.0.0.1 127.0.0.2"});
  RedisOptions redis{.tls_ca = Trusted().ca()};
  EXPECT_THAT(node.WhyNot(redis, "127.0.0.2"),
              HasSubstr("the node's certificate is not for 127.0.0.2; reach the node by a name"));
  redis.tls_server_name = "localhost";
  EXPECT_TRUE(node.Connects(redis, "127.0.0.2"));
  redis.tls_server_name = "127.0.0.1";
  EXPECT_TRUE(node.Connects(redis, "127.0.0.2"));
  redis.tls_server_name = "elsewhere";
  EXPECT_THAT(node.WhyNot(redis), HasSubstr("the node's certificate is not for elsewhere"));
}

TEST(Tls, TakesAWildcardForAWholeLabelOnly) {
  const Certificates made("DNS:f*.shop.example,DNS:*.bank.example");
  TlsNode node(made);
  RedisOptions redis{.tls_ca = made.ca(), .tls_server_name = "foo.bank.example"};
  EXPECT_TRUE(node.Connects(redis));
  redis.tls_server_name = "foo.shop.example";
  EXPECT_THAT(node.WhyNot(redis), HasSubstr("certificate is not for foo.shop.example"));
}

TEST(Tls, RefusesAnExpiredNode) {
  const Certificates made(Certificates::kNode, 0);
  TlsNode node(made);
  EXPECT_THAT(node.WhyNot({.tls_ca = made.ca()}),
              HasSubstr("the node's certificate, or one above it, has expired"));
}

TEST(Tls, RefusesVersionsBefore12) {
  TlsNode node(Trusted(), "no", {"tls-protocols TLSv1.1", "tls-ciphers DEFAULT@SECLEVEL=0"});
  EXPECT_THAT(node.WhyNot({.tls_ca = Trusted().ca()}), HasSubstr("no TLS 1.2 or later"));
}

class ClientCertificate : public ::testing::TestWithParam<const char*> {};

TEST_P(ClientCertificate, IsShownToANodeThatAsksForIt) {
  Certificates& made = Trusted();
  TlsNode node(made, "yes", {fmt::format("tls-protocols {}", GetParam())});
  RedisOptions redis{.tls_ca = made.ca()};
  EXPECT_THAT(node.WhyNot(redis),
              HasSubstr("the node asks for a client certificate; set lock.redis.tls.certificate"));

  redis.tls_certificate = made.certificate();
  redis.tls_key = made.key();
  EXPECT_TRUE(node.Connects(redis));

  Certificates others;
  redis.tls_certificate = others.certificate();
  redis.tls_key = others.key();
  EXPECT_THAT(node.WhyNot(redis), HasSubstr("the node does not trust the CA of our certificate"));

  made.Issue("late", "DNS:client", 0);
  redis.tls_certificate = made.certificate("late");
  redis.tls_key = made.key("late");
  EXPECT_THAT(node.WhyNot(redis), HasSubstr("the node says that our certificate has expired"));
}

INSTANTIATE_TEST_SUITE_P(Versions, ClientCertificate, ::testing::Values("TLSv1.2", "TLSv1.3"),
                         [](const auto& version) {
                           return std::string(version.param[6] == '2' ? "Tls12" : "Tls13");
                         });

TEST(Tls, NamesTheFileThatCannotBeUsed) {
  Certificates& made = Trusted();
  const Certificates others;
  const std::string text = made.Write("text", "no certificate\n");
  const std::string empty = made.Write("empty", "");
  const std::string locked = made.key("locked");
  made.OpenSsl({"rsa", "-aes128", "-passout", "pass:x", "-in", made.key(), "-out", locked});
  const auto problem = [](const std::string& ca, const std::string& certificate,
                          const std::string& key) {
    const auto error = TlsProblemOf(
        {.nodes = {"a:1"}, .tls_ca = ca, .tls_certificate = certificate, .tls_key = key});
    return error ? error->Line() : "";
  };
  EXPECT_EQ(problem(made.ca(), made.certificate(), made.key()), "");
  EXPECT_EQ(problem("/nowhere", "", ""),
            "/nowhere: the CA file cannot be used: No such file or directory; check "
            "lock.redis.tls.ca (--tls-ca)");
  EXPECT_THAT(problem(text, "", ""), HasSubstr(text + ": the CA file cannot be used: "));
  EXPECT_THAT(problem(empty, "", ""),
              HasSubstr(empty + ": the CA file cannot be used: it is empt"));
  EXPECT_THAT(problem("/", "", ""), HasSubstr("/: the CA file cannot be used: Is a directory"));
  EXPECT_THAT(
      problem("", made.certificate(), ""),
      HasSubstr(made.certificate() + ": the client's certificate cannot be used: its key is "
                                     "not given; give both"));
  EXPECT_THAT(problem("", "", made.key()), HasSubstr("its certificate is not given"));
  EXPECT_THAT(problem("", "/nowhere", made.key()), HasSubstr("/nowhere: the client's certificate"));
  EXPECT_THAT(problem("", text, made.key()),
              HasSubstr(text + ": the client's certificate cannot be used: it is not PEM"));
  EXPECT_THAT(problem("", made.certificate(), text),
              HasSubstr(text + ": the client's key cannot be used: it is not PEM"));
  EXPECT_THAT(problem("", made.certificate(), others.key()),
              HasSubstr(others.key() +
                        ": the client's key cannot be used: it does not belong to the "
                        "certificate " +
                        made.certificate()));
  EXPECT_THAT(problem("", made.certificate(), locked), HasSubstr("it is encrypted"));
}

TEST(Tls, SaysSoWhenOnlyOneSideSpeaksTls) {
  TlsNode node(Trusted());
  ConnectionHarness plain(fmt::format("127.0.0.1:{}", node.port));
  plain.Start();
  ASSERT_TRUE(plain.RunUntil([&] { return plain.client.Noted("redis_node_away"); }, "the note"));
  EXPECT_TRUE(plain.client.infos.empty());
  node.port = node.server.port();
  EXPECT_THAT(node.WhyNot({.tls_ca = Trusted().ca()}), HasSubstr("TLS"));
}

}  // namespace
}  // namespace fencepost::locking
