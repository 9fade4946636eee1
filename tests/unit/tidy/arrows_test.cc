// The arrows between the layers: config → consumer → locking; metrics looks at consumer and
// locking; consumer/cli wires them all. And each third-party library has one home.
#include <array>
#include <optional>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tidy/source_tree.h"

namespace fencepost::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Which folders of ours a file may include; nullopt: any.
std::optional<std::vector<std::string>> Allowed(const SourceFile& file) {
  if (Under(file, "locking/examples")) return {{"arguments.h"}};  // like any user: with <>
  if (Under(file, "locking")) return {{"locking/"}};
  if (Under(file, "consumer/cli")) return {{"config/", "consumer/", "locking/", "metrics/"}};
  if (Under(file, "consumer")) return {{"consumer/", "locking/"}};
  if (Under(file, "metrics")) return {{"consumer/", "locking/", "metrics/"}};
  if (Under(file, "config")) return {{"config/", "consumer/", "locking/"}};
  return std::nullopt;
}

Complaints LayersPointDownwards(const SourceFile& file) {
  Complaints complaints;
  const auto allowed = Allowed(file);
  if (!IsSource(file) || !allowed) return complaints;
  for (const Include& include : Includes(file)) {
    if (!include.ours) continue;
    bool fine = false;
    for (const std::string& folder : *allowed) fine = fine || include.target.starts_with(folder);
    if (include.target.starts_with("consumer/cli/") && !Under(file, "consumer/cli")) fine = false;
    if (!fine)
      complaints.push_back(Complaint(file, include.line, "must not include " + include.target));
  }
  return complaints;
}

struct Home {
  std::string_view library;  // how its headers begin
  std::string_view folder;   // the only one, besides tests, that may include it
  std::string_view also;     // but for these: the demo and the pipeline tests look with their own
  std::string_view too = "";
};
constexpr std::array kHomes = {
    Home{"librdkafka/", "consumer/kafka", ""},
    Home{"yaml-cpp/", "config", ""},
    Home{"prometheus/", "metrics", ""},
    Home{"httplib", "metrics/http", ""},
    Home{"hiredis/", "locking/redis", ""},
    Home{"libpq-fe.h", "consumer/outputs", "consumer/cli/demo"},
    Home{"mysql.h", "consumer/outputs", ""},
    Home{"sqlite3.h", "consumer/outputs", "consumer/cli/demo", "consumer/testing"},
    Home{"curl/", "consumer/handlers", ""},
    Home{"jq.h", "consumer/handlers", ""},
    Home{"google/protobuf/", "consumer/decode", "consumer/encode", "metrics/traces"},
    Home{"CLI/", "consumer/cli", ""},
};

Complaints LibrariesHaveOneHome(const SourceFile& file) {
  Complaints complaints;
  // The examples are programs of the lock's users.
  if (!IsSource(file) || Under(file, "tests") || Under(file, "locking/examples")) return complaints;
  for (const Include& include : Includes(file)) {
    for (const Home& home : kHomes) {
      const bool at_home =
          Under(file, home.folder) || Under(file, home.also) || Under(file, home.too);
      if (include.target.starts_with(home.library) && !at_home) {
        complaints.push_back(Complaint(file, include.line,
                                       include.target + " belongs to " + std::string(home.folder)));
      }
    }
  }
  return complaints;
}

// The protocols are values: no sockets, threads or clocks of their own.
Complaints CoresAreFreeOfTheOutside(const SourceFile& file) {
  static const std::regex kOutside(
      R"(^(asio|hiredis|openssl/ssl|sys/|netinet/|arpa/|unistd\.h|poll\.h|thread$|mutex$|)"
      R"(shared_mutex$|condition_variable$|future$|fstream$|iostream$|random$|librdkafka))");
  static const std::regex kClock(R"((::|\.|->)\s*now\s*\(|\bclock_gettime\b|\bgettimeofday\b|)"
                                 R"(\btime\s*\(\s*(0|nullptr|NULL)\s*\))");
  Complaints complaints;
  const bool session = file.path.starts_with("locking/redis/session/node_session.");
  const bool core = session || Under(file, "locking/core") || Under(file, "consumer/flow");
  if (!IsSource(file) || !core) return {};
  for (const Include& include : Includes(file)) {
    if (session && include.target == "hiredis/hiredis.h") continue;  // its parser
    if (std::regex_search(include.target, kOutside)) {
      complaints.push_back(
          Complaint(file, include.line, "a core must not include " + include.target));
    }
  }
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view code = lines[i].substr(0, lines[i].find("//"));
    if (std::regex_search(code.begin(), code.end(), kClock)) {
      complaints.push_back(Complaint(file, i + 1, "a core must not read a clock"));
    }
  }
  return complaints;
}

// The tier unit starts no server and opens no socket: of the support it takes what starts nothing.
Complaints UnitTestsTalkToNobody(const SourceFile& file) {
  static const std::regex kSockets(
      R"(^(asio|sys/socket|netinet/|netdb|librdkafka/rdkafka_mock|)"
      R"(consumer/kafka/client/mock_cluster|metrics/http/http_server|)"
      R"(tests/support/(?!(audit|node_model|paths|peak_memory|process|sentinel_node)\.h)))");
  Complaints complaints;
  if (!IsSource(file) || !Under(file, "tests/unit")) return complaints;
  for (const Include& include : Includes(file)) {
    if (std::regex_search(include.target, kSockets)) {
      complaints.push_back(
          Complaint(file, include.line, "a unit test must not include " + include.target));
    }
  }
  return complaints;
}

TEST(Arrows, OnlyPointFromConfigToConsumerToLocking) {
  EXPECT_THAT(Check(LayersPointDownwards), IsEmpty());
}

TEST(Arrows, AreMissedWhenALowerLayerIncludesAHigherOne) {
  EXPECT_THAT(LayersPointDownwards({"locking/a.h", "#include \"consumer/record/record.h\"\n"}),
              ElementsAre("locking/a.h:1: must not include consumer/record/record.h"));
  EXPECT_THAT(LayersPointDownwards({"consumer/flow/a.cc", "\n# include \"metrics/cells.h\"\n"}),
              ElementsAre("consumer/flow/a.cc:2: must not include metrics/cells.h"));
  EXPECT_THAT(LayersPointDownwards({"config/a.cc", "#include \"consumer/cli/run.h\"\n"}),
              ElementsAre("config/a.cc:1: must not include consumer/cli/run.h"));
  EXPECT_THAT(LayersPointDownwards({"metrics/a.cc", "#include \"config/load.h\"\n"}),
              ElementsAre("metrics/a.cc:1: must not include config/load.h"));
  EXPECT_THAT(
      LayersPointDownwards({"consumer/cli/run.cc", "#include \"tests/support/process.h\"\n"}),
      ElementsAre("consumer/cli/run.cc:1: must not include tests/support/process.h"));
}

TEST(Libraries, AreIncludedOnlyWhereTheyLive) {
  EXPECT_THAT(Check(LibrariesHaveOneHome), IsEmpty());
}

TEST(Libraries, AreMissedWhenTheyStray) {
  EXPECT_THAT(LibrariesHaveOneHome({"consumer/cli/a.cc", "#include <librdkafka/rdkafka.h>\n"}),
              ElementsAre("consumer/cli/a.cc:1: librdkafka/rdkafka.h belongs to consumer/kafka"));
  EXPECT_THAT(LibrariesHaveOneHome({"consumer/a.h", "#include <yaml-cpp/yaml.h>\n"}),
              ElementsAre("consumer/a.h:1: yaml-cpp/yaml.h belongs to config"));
}

TEST(Cores, NeitherOpenSocketsNorReadClocks) {
  EXPECT_THAT(Check(CoresAreFreeOfTheOutside), IsEmpty());
}

TEST(Cores, AreCaughtWithASocketOrAClock) {
  EXPECT_THAT(CoresAreFreeOfTheOutside({"locking/core/a.cc", "#include <asio/ip/tcp.hpp>\n"}),
              ElementsAre("locking/core/a.cc:1: a core must not include asio/ip/tcp.hpp"));
  EXPECT_THAT(CoresAreFreeOfTheOutside(
                  {"locking/core/a.cc", "// now() is passed in\nauto t = Clock::now();\n"}),
              ElementsAre("locking/core/a.cc:2: a core must not read a clock"));
  EXPECT_THAT(CoresAreFreeOfTheOutside({"locking/redis/session/node_session.cc",
                                        "#include <hiredis/hiredis.h>\n#include <thread>\n"}),
              ElementsAre("locking/redis/session/node_session.cc:2: a core must not include "
                          "thread"));
}

TEST(UnitTests, StartNoServerAndOpenNoSocket) {
  EXPECT_THAT(Check(UnitTestsTalkToNobody), IsEmpty());
  EXPECT_THAT(
      UnitTestsTalkToNobody({"tests/unit/a/b.cc", "#include \"tests/support/servers.h\"\n"}),
      ElementsAre("tests/unit/a/b.cc:1: a unit test must not include tests/support/servers.h"));
}

}  // namespace
}  // namespace fencepost::tidy
