// The port's TLS: observe.tls. The clients are curl, and sockets that say what they like.
#include <curl/curl.h>
#include <sys/resource.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/http/certificates.h"
#include "metrics/http/http_server.h"
#include "tests/component/metrics_http/raw_client.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using TestCertificates = fencepost::testing::Certificates;
using fencepost::testing::WaitUntil;

struct Client {
  std::string ca;
  std::string certificate, key;
  long version = CURL_SSLVERSION_DEFAULT;
  std::string host = "127.0.0.1";
};

// The status; 0: no answer.
long Status(int port, const std::string& path, const Client& client) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  const auto set = [&](CURLoption option, const std::string& text) {
    if (!text.empty()) curl_easy_setopt(curl.get(), option, text.c_str());
  };
  set(CURLOPT_URL, fmt::format("https://{}:{}{}", client.host, port, path));
  set(CURLOPT_CAINFO, client.ca);
  set(CURLOPT_SSLCERT, client.certificate);
  set(CURLOPT_SSLKEY, client.key);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 10L);
  curl_easy_setopt(curl.get(), CURLOPT_SSLVERSION, client.version);
  const auto nowhere =
      +[](char*, std::size_t size, std::size_t count, void*) { return size * count; };
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, nowhere);
  if (curl_easy_perform(curl.get()) != CURLE_OK) return 0;
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

void Copy(const std::string& from, const std::string& to) {
  // As secrets are replaced: whole, by another file of that name.
  std::filesystem::copy_file(from, to + ".new");
  std::filesystem::rename(to + ".new", to);
}

class PortTls : public ::testing::Test {
 protected:
  tl::expected<std::unique_ptr<HttpServer>, Error> Tried(const consumer::PortTls& tls,
                                                         const consumer::PortAuth& auth = {},
                                                         const std::string& address = "127.0.0.1:0",
                                                         HttpLimits limits = {}) {
    Endpoints endpoints;
    endpoints.metrics = [] { return std::string(1UL << 20, 'm'); };
    endpoints.live = [] { return ProbeResult{true, ""}; };
    endpoints.tls = tls;
    endpoints.auth = auth;
    endpoints.note = [this](locking::Severity, std::string_view event, std::string_view text) {
      const std::lock_guard lock(mutex_);
      notes_.push_back(fmt::format("{}: {}", event, text));
    };
    return HttpServer::Start(address, endpoints, limits);
  }
  void Start(const consumer::PortTls& tls, const consumer::PortAuth& auth = {},
             const std::string& address = "127.0.0.1:0", HttpLimits limits = {}) {
    auto server = Tried(tls, auth, address, limits);
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  long Asked(const std::string& path, const Client& client) {
    return Status(server_->port(), path, client);
  }

  // Made once: keys take their time.
  static const TestCertificates& Own() {
    static const TestCertificates made;
    return made;
  }
  static const TestCertificates& Other() {
    static const TestCertificates made;
    return made;
  }
  const TestCertificates &own_ = Own(), &other_ = Other();
  std::mutex mutex_;
  std::vector<std::string> notes_;  // guarded by mutex_
  std::unique_ptr<HttpServer> server_;
};

TEST_F(PortTls, ServesWhoTrustsItsCertificateByCurrentTlsAlone) {
  Start({.certificate = own_.certificate(), .key = own_.key()});
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
  EXPECT_EQ(Asked("/metrics", {.ca = own_.ca()}), 200);
  EXPECT_EQ(Asked("/live", {.ca = own_.ca(), .host = "localhost"}), 200);
  EXPECT_EQ(Asked("/live", {.ca = own_.ca(), .version = CURL_SSLVERSION_MAX_TLSv1_2}), 200);
  EXPECT_EQ(Asked("/live", {.ca = own_.ca(), .version = CURL_SSLVERSION_MAX_TLSv1_1}), 0);
  EXPECT_EQ(Asked("/live", {.ca = other_.ca()}), 0);
  EXPECT_EQ(Ask(server_->port(), "GET", "/metrics").find("200"), std::string::npos);
}

TEST_F(PortTls, IsThereForIpv6) {
  const TestCertificates names("IP:::1");
  auto server = Tried({.certificate = names.certificate(), .key = names.key()}, {}, "[::1]:0");
  if (!server) GTEST_SKIP() << server.error().Line();
  EXPECT_EQ(Status((*server)->port(), "/live", {.ca = names.ca(), .host = "[::1]"}), 200);
}

TEST_F(PortTls, EndsAHandshakeThatDoesNotGoOn) {
  Start({.certificate = own_.certificate(), .key = own_.key()}, {}, "127.0.0.1:0",
        {.request = 300ms});
  const std::string hello("\x16\x03\x01\x02\x00\x01", 6);  // of one with 512 bytes
  for (const std::string& begun : {std::string(), hello}) {
    const int fd = Connect("127.0.0.1", server_->port());
    Say(fd, begun);
    EXPECT_EQ(Hear(fd), "");
    close(fd);
  }
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
}

TEST_F(PortTls, WithAClientCaTakesItsClientsAlone) {
  Start({.certificate = own_.certificate(), .key = own_.key(), .client_ca = other_.ca()});
  const Client none{.ca = own_.ca()};
  const Client good{.ca = own_.ca(), .certificate = other_.certificate(), .key = other_.key()};
  const Client stranger{.ca = own_.ca(), .certificate = own_.certificate(), .key = own_.key()};
  for (const char* path : {"/metrics", "/live"}) {
    EXPECT_EQ(Asked(path, good), 200) << path;
    EXPECT_EQ(Asked(path, none), 0) << path;
    EXPECT_EQ(Asked(path, stranger), 0) << path;
  }
}

TEST_F(PortTls, WithAClientCaAndOpenPathsAsksForACertificateElsewhere) {
  Start({.certificate = own_.certificate(), .key = own_.key(), .client_ca = other_.ca()},
        {.open = {"live"}});
  const Client good{.ca = own_.ca(), .certificate = other_.certificate(), .key = other_.key()};
  const Client stranger{.ca = own_.ca(), .certificate = own_.certificate(), .key = own_.key()};
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
  EXPECT_EQ(Asked("/metrics", {.ca = own_.ca()}), 403);
  EXPECT_EQ(Asked("/metrics", good), 200);
  EXPECT_EQ(Asked("/live", stranger), 0);
}

TEST_F(PortTls, WithACertificateStillAsksForTheToken) {
  Start({.certificate = own_.certificate(), .key = own_.key(), .client_ca = other_.ca()},
        {.bearer = "token"});
  EXPECT_EQ(Asked("/metrics",
                  {.ca = own_.ca(), .certificate = other_.certificate(), .key = other_.key()}),
            401);
}

TEST_F(PortTls, ServesANewCertificateOnceItsFilesAreThere) {
  const fencepost::testing::TempDir dir;
  const std::string certificate = dir.File("tls.crt"), key = dir.File("tls.key");
  Copy(own_.certificate(), certificate);
  Copy(own_.key(), key);
  Start({.certificate = certificate, .key = key});
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
  // The key does not come at the same instant.
  Copy(other_.certificate(), certificate);
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200) << "by the old one";
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
  Copy(other_.key(), key);
  EXPECT_EQ(Asked("/live", {.ca = other_.ca()}), 200);
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 0);
  std::filesystem::remove(key);
  EXPECT_EQ(Asked("/live", {.ca = other_.ca()}), 200) << "by what was read";
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("http_certificate_refused: " + key),
                                  HasSubstr("http_certificate: "),
                                  HasSubstr("http_certificate_refused: " + key)));
}

// As some tools do that keep the times of what they copy.
TEST_F(PortTls, ServesANewCertificateThatIsWrittenIntoTheFilesWithTheOldTimes) {
  const fencepost::testing::TempDir dir;
  const std::string certificate = dir.File("tls.crt"), key = dir.File("tls.key");
  const auto write = [](const std::string& from, const std::string& to) {
    std::ifstream in(from);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    text.resize(4096, '\n');  // both of one size
    std::ofstream(to, std::ios::trunc) << text;
  };
  write(own_.certificate(), certificate);
  write(own_.key(), key);
  Start({.certificate = certificate, .key = key});
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
  for (const auto& [from, to] :
       {std::pair{other_.certificate(), certificate}, std::pair{other_.key(), key}}) {
    const auto time = std::filesystem::last_write_time(to);
    write(from, to);
    std::filesystem::last_write_time(to, time);
  }
  EXPECT_EQ(Asked("/live", {.ca = other_.ca()}), 200);
}

// What kept the files from being read does not show at them: no descriptor was left.
TEST_F(PortTls, TriesFilesAgainAfterTenSecondsThatItCouldNotRead) {
  const fencepost::testing::TempDir dir;
  const consumer::PortTls tls{.certificate = dir.File("tls.crt"), .key = dir.File("tls.key")};
  Copy(own_.certificate(), tls.certificate);
  Copy(own_.key(), tls.key);
  int refused = 0;
  const auto files = Certificates::Read(tls, false, [&](auto, std::string_view event, auto) {
    refused += event == "http_certificate_refused" ? 1 : 0;
  });
  ASSERT_TRUE(files) << files.error().Line();
  const Certificates::Clock::time_point now{};
  const Certificates::Context old = (*files)->Current(now);
  Copy(other_.certificate(), tls.certificate);
  Copy(other_.key(), tls.key);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Certificates::Context without = (*files)->Current(now);
  const Certificates::Context still = (*files)->Current(now + 10s);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(without, old);
  EXPECT_EQ(still, old);
  EXPECT_EQ((*files)->Current(now + 19s), old);
  EXPECT_NE((*files)->Current(now + 20s), old);
  EXPECT_EQ(refused, 1) << "once, not at each try";
}

// Who asks, and neither takes the answer nor closes, has no place of those who behave.
TEST_F(PortTls, AnswersThoseWhoBehaveWhileAnotherLeavesItsConnectionsOpen) {
  for (const std::string path : {"/live", "/metrics"}) {
    Start({.certificate = own_.certificate(), .key = own_.key()}, {}, "127.0.0.1:0",
          {.connections = 8});
    std::atomic<bool> over{false};
    std::atomic<int> opened{0};
    std::thread attacker([&] {
      std::deque<std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>> left;
      const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
      while (!over) {
        auto& curl = left.emplace_back(curl_easy_init(), &curl_easy_cleanup);
        const std::string url = fmt::format("https://127.0.0.1:{}", server_->port());
        curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
        curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
        curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl.get(), CURLOPT_CONNECT_ONLY, 1L);
        std::size_t sent = 0;
        if (curl_easy_perform(curl.get()) == CURLE_OK) {
          curl_easy_send(curl.get(), request.data(), request.size(), &sent);
          ++opened;
        }
        if (left.size() > 32) left.pop_front();
      }
    });
    EXPECT_TRUE(WaitUntil(20s, [&] { return opened > 16; }));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200) << path;
    over = true;
    attacker.join();
  }
}

// As Kubernetes replaces a secret: the files stay links, and their folder becomes another.
TEST_F(PortTls, FollowsLinksThatLeadElsewhere) {
  namespace fs = std::filesystem;
  const fencepost::testing::TempDir dir;
  for (const auto& [name, from] : {std::pair{"old", &own_}, std::pair{"new", &other_}}) {
    fs::create_directory(dir.path() / name);
    Copy(from->certificate(), dir.File(std::string(name) + "/tls.crt"));
    Copy(from->key(), dir.File(std::string(name) + "/tls.key"));
  }
  fs::create_symlink("old", dir.path() / "data");
  Start({.certificate = dir.File("data/tls.crt"), .key = dir.File("data/tls.key")});
  EXPECT_EQ(Asked("/live", {.ca = own_.ca()}), 200);
  fs::create_symlink("new", dir.path() / "data.new");
  fs::rename(dir.path() / "data.new", dir.path() / "data");
  EXPECT_EQ(Asked("/live", {.ca = other_.ca()}), 200);
}

TEST_F(PortTls, TakesAnotherClientCaForNewConnections) {
  const fencepost::testing::TempDir dir;
  const std::string ca = dir.File("ca.crt");
  Copy(own_.ca(), ca);
  Start({.certificate = own_.certificate(), .key = own_.key(), .client_ca = ca});
  const Client client{.ca = own_.ca(), .certificate = own_.certificate(), .key = own_.key()};
  EXPECT_EQ(Asked("/live", client), 200);
  Copy(other_.ca(), ca);
  EXPECT_EQ(Asked("/live", client), 0);
}

TEST_F(PortTls, IsRefusedAtTheStartWithFilesThatCannotBeUsed) {
  const fencepost::testing::TempDir dir;
  const std::string none = dir.File("none"), empty = dir.Write("empty", "");
  const std::string text = dir.Write("text", "no PEM");
  struct Row {
    consumer::PortTls tls;
    std::string where, what;
  };
  for (const Row& row : {Row{{none, own_.key(), ""}, none, "observe.tls.certificate"},
                         Row{{empty, own_.key(), ""}, empty, "it is empty"},
                         Row{{text, own_.key(), ""}, text, "observe.tls.certificate"},
                         Row{{own_.certificate(), none, ""}, none, "No such file"},
                         Row{{own_.certificate(), other_.key(), ""}, other_.key(), "mismatch"},
                         Row{{own_.certificate(), own_.key(), none}, none, "client_ca"}}) {
    const auto server = Tried(row.tls);
    ASSERT_FALSE(server) << row.what;
    EXPECT_EQ(server.error().code, "http_certificate");
    EXPECT_EQ(server.error().where, row.where);
    EXPECT_THAT(server.error().Line(), HasSubstr(row.what));
  }
}

}  // namespace
}  // namespace fencepost::metrics
