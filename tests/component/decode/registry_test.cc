// The schema registry's answers, good and bad, from a server that says what the test wants.
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/decode/registry/registry_client.h"
#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/decode/registry/schema_cache.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StubServer;
using testing::WaitUntil;
using namespace std::chrono_literals;

constexpr const char* kElsewhere =
    "HTTP/1.1 302 Found\r\nLocation: /base/schemas/ids/8\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kUnknown = R"({"error_code":40403,"message":"Schema not found"})";
const CachePauses kQuick{
    .first = 1ms, .most = 5ms, .unknown = 1ms, .questions = 3, .believe = 0ms, .forget = 1s};

Record Written(std::string_view key, std::string_view value) {
  Record record;
  record.key = key;
  record.value = value;
  return record;
}

void Soon(const std::string& what, const std::function<bool()>& is_so) {
  EXPECT_TRUE(WaitUntil(10s, is_so, what));
}

class Registry : public ::testing::Test {
 protected:
  using Answer = StubServer::Answer;

  // The answers to GET `path`, one after the other, the last one for ever.
  void Answers(const std::string& path, std::deque<Answer> answers) {
    const std::lock_guard lock(mutex_);
    answers_["GET " + path + " HTTP/1.1"] = std::move(answers);
  }
  [[nodiscard]] RegistryOptions Options() const {
    return {.url = server_.Url("/base/"),
            .auth = {.username = "reader", .password = "hunter2"},
            .headers = {{"X-Cluster", "lsrc-1"}}};
  }
  [[nodiscard]] DecodeOptions Decoding() const {
    return {.value = RecordFormat::kAvro, .registry = Options()};
  }
  // Asks until the schema, or why there is none, is there.
  static const SchemaCache::Known& Wait(SchemaCache& cache, std::uint32_t id) {
    const SchemaCache::Known* known = nullptr;
    Soon("the schema", [&] { return (known = cache.Find(id)) != nullptr; });
    static const SchemaCache::Known kNone{.kind = {}, .decoder = nullptr, .problem = "none came"};
    return known == nullptr ? kNone : *known;
  }
  [[nodiscard]] std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const auto& request : server_.requests()) lines.push_back(request.line);
    return lines;
  }

  std::mutex mutex_;
  std::map<std::string, std::deque<Answer>> answers_;
  StubServer server_{[this](const StubServer::Request& request) {
    const std::lock_guard lock(mutex_);
    auto& answers = answers_[request.line];
    if (answers.empty()) return Answer{.status = 404, .body = "no such page"};
    const Answer answer = answers.front();
    if (answers.size() > 1) answers.pop_front();
    return answer;
  }};
};

TEST_F(Registry, GivesASchemaOnceWithWhatItRefersToAndThatBeforeIt) {
  Answers("/base/schemas/ids/7",
          {{.body = R"({"schema":"{\"type\":\"record\",\"name\":\"A\",\"fields\":[)"
                    R"({\"name\":\"b\",\"type\":\"B\"}]}",)"
                    R"("references":[{"name":"B","subject":"x/b","version":2}]})"}});
  Answers("/base/subjects/x%2Fb/versions/2",
          {{.body = R"({"schema":"{\"type\":\"record\",\"name\":\"B\",\"fields\":[)"
                    R"({\"name\":\"c\",\"type\":\"C\"}]}",)"
                    R"("references":[{"name":"C","subject":"c","version":1}]})"}});
  Answers("/base/subjects/c/versions/1",
          {{.body = R"({"schema":"{\"type\":\"fixed\",\"name\":\"C\",\"size\":1}"})"}});
  SchemaCache cache(Options(), kQuick);
  const SchemaCache::Known& known = Wait(cache, 7);
  ASSERT_NE(known.decoder, nullptr) << known.problem;
  std::string json;
  EXPECT_TRUE(known.decoder->Decode("a", json));
  EXPECT_EQ(json, R"({"b":{"c":"YQ=="}})");
  EXPECT_EQ(cache.Find(7), &known);
  EXPECT_THAT(Lines(), ElementsAre("GET /base/schemas/ids/7 HTTP/1.1",
                                   "GET /base/subjects/x%2Fb/versions/2 HTTP/1.1",
                                   "GET /base/subjects/c/versions/1 HTTP/1.1"));
  EXPECT_EQ(server_.requests()[0].headers.at("authorization"), "Basic cmVhZGVyOmh1bnRlcjI=");
  EXPECT_EQ(server_.requests()[0].headers.at("x-cluster"), "lsrc-1");
}

TEST_F(Registry, IsToldWhoAsksByASecretThatIsReadForEachRequest) {
  Answers("/base/schemas/ids/7", {{.body = R"({"schema":"\"int\""})"}});
  const testing::TempDir folder;
  const Secret file = Secret::OfFile(folder.File("secret"));
  struct Row {
    HttpAuthOptions auth;
    const char *key, *one, *two;
  };
  for (const Row& row :
       {Row{{.bearer = file}, "bearer", "Bearer one", "Bearer two"},
        Row{{.username = "u", .password = file}, "password", "Basic dTpvbmU=", "Basic dTp0d28="}}) {
    std::filesystem::remove(folder.File("secret"));
    RegistryOptions options = Options();
    options.auth = row.auth;
    RegistryClient client(options);
    const std::size_t before = server_.requests().size();
    const auto none = client.Fetch(7);
    ASSERT_FALSE(none);
    EXPECT_FALSE(none.error().unknown);
    EXPECT_THAT(none.error().text, ::testing::HasSubstr(fmt::format(
                                       "no login: {}: the file {}: No such file or directory",
                                       row.key, folder.File("secret"))));
    EXPECT_EQ(server_.requests().size(), before);
    for (const char* secret : {"one\n", "two\n"}) {
      (void)folder.Write("secret", secret);
      EXPECT_TRUE(client.Fetch(7));
    }
    EXPECT_EQ(server_.requests()[before].headers.at("authorization"), row.one);
    EXPECT_EQ(server_.requests()[before + 1].headers.at("authorization"), row.two);
  }
}

// One token for all requests, another one once it is refused.
TEST_F(Registry, IsToldWhoAsksByATokenOfOauth) {
  Answers("/base/schemas/ids/7", {{.body = R"({"schema":"\"int\""})"},
                                  {.body = R"({"schema":"\"int\""})"},
                                  {.status = 401},
                                  {.body = R"({"schema":"\"int\""})"}});
  std::atomic<int> tokens = 0;
  StubServer provider([&](const StubServer::Request&) {
    return Answer{.body = fmt::format(R"({{"access_token":"t{}","token_type":"Bearer",)"
                                      R"("expires_in":3600}})",
                                      ++tokens)};
  });
  RegistryOptions options = Options();
  options.auth = {.oauth = {.token_url = provider.Url("/token"),
                            .client_id = "c",
                            .client_secret = "s3cret",
                            .scope = "read",
                            .extensions = ""}};
  RegistryClient client(options);
  EXPECT_TRUE(client.Fetch(7));
  EXPECT_TRUE(client.Fetch(7));
  EXPECT_FALSE(client.Fetch(7));
  EXPECT_TRUE(client.Fetch(7));
  std::vector<std::string> said;
  for (const auto& request : server_.requests())
    said.push_back(request.headers.at("authorization"));
  EXPECT_THAT(said, ElementsAre("Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"));
}

TEST_F(Registry, GivesASchemaOfSixteenMebibytesAtMostWithAllThatItRefersTo) {
  const std::string padding(std::size_t{9} << 20, ' ');
  Answers(
      "/base/schemas/ids/7",
      {{.body = R"({"schema":"\"int\"","references":[{"name":"B","subject":"b","version":1}]})" +
                padding}});
  Answers("/base/subjects/b/versions/1", {{.body = padding + R"({"schema":"\"int\""})"}});
  RegistryClient client(Options());
  const auto both = client.Fetch(7);
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().text, ::testing::HasSubstr("/subjects/b/versions/1: "));
  Answers("/base/subjects/b/versions/1", {{.body = R"({"schema":"\"int\""})"}});
  EXPECT_TRUE(client.Fetch(7)) << "each schema has as much";
}

TEST_F(Registry, ThatIsAwayOrRefusesUsOrIsNoneIsAskedAgainUntilItAnswers) {
  const Answer good{.body = R"({"schema":"\"string\""})"};
  Answers("/base/schemas/ids/7", {{.status = 503},
                                  {.status = 429},
                                  {.status = 401},
                                  {.status = 403},
                                  {.status = 404, .body = "a proxy's page"},
                                  {.status = 404, .body = R"({"error_code":404})"},
                                  {.status = 404, .body = "[]"},
                                  {.status = 404, .body = ""},
                                  {.raw = kElsewhere},
                                  {.body = "<html>"},
                                  {.body = R"({"schema":7})"},
                                  {.body = R"({"schema":"x","schemaType":"XML"})"},
                                  {.raw = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"},
                                  good});
  SchemaCache cache(Options(), kQuick);
  const SchemaCache::Known& known = Wait(cache, 7);
  EXPECT_NE(known.decoder, nullptr) << known.problem;
  EXPECT_EQ(Lines().size(), 14u) << "each was asked again, and none elsewhere";
  EXPECT_EQ(cache.Trouble(), "");
}

// From a path where it has given others.
TEST_F(Registry, WhoseNotFoundIsInAProxysWordsStopsNoWorkerOnceItHasGivenASchema) {
  Answers("/base/schemas/ids/1", {{.body = R"({"schema":"\"string\""})"}});
  Answers("/base/schemas/ids/7", {{.status = 404, .body = "a proxy's page"}});
  SchemaCache cache(Options(), kQuick);
  EXPECT_EQ(cache.Find(7), nullptr);
  Soon("the trouble", [&] { return !cache.Trouble().empty(); });
  EXPECT_NE(Wait(cache, 1).decoder, nullptr);
  EXPECT_THAT(Wait(cache, 7).problem, HasSubstr("does not know schema id 7"));
  EXPECT_EQ(cache.Trouble(), "");
}

TEST_F(Registry, IsAskedOnceForAnIdBelowOneThatItKnows) {
  Answers("/base/schemas/ids/9", {{.body = R"({"schema":"\"string\""})"}});
  Answers("/base/schemas/ids/7", {{.status = 404, .body = kUnknown}});
  SchemaCache cache(Options(), kQuick);
  EXPECT_NE(Wait(cache, 9).decoder, nullptr);
  EXPECT_NE(Wait(cache, 7).problem, "");
  EXPECT_EQ(Lines().size(), 2u);
}

TEST_F(Registry, IsAskedOnceForFurtherUnknownIdsWithinAMinute) {
  for (const char* id : {"11", "12", "13"}) {
    Answers(std::string("/base/schemas/ids/") + id, {{.status = 404, .body = kUnknown}});
  }
  CachePauses pauses = kQuick;
  pauses.believe = 60s;
  SchemaCache cache(Options(), pauses);
  for (const std::uint32_t id : {11U, 12U, 13U}) EXPECT_NE(Wait(cache, id).problem, "");
  EXPECT_EQ(Lines().size(), 5u);
}

TEST_F(Registry, ThatRefusesOneIdGivesTheOthersAllTheSame) {
  Answers("/base/schemas/ids/1", std::deque<Answer>(50, {.status = 403}));
  Answers("/base/schemas/ids/2", {{.body = R"({"schema":"\"string\""})"}});
  SchemaCache cache(Options(), kQuick);
  EXPECT_EQ(cache.Find(1), nullptr);
  EXPECT_NE(Wait(cache, 2).decoder, nullptr);
}

TEST_F(Registry, IsNotAskedForIdsThatItCannotHave) {
  SchemaCache cache(Options(), kQuick);
  for (const std::uint32_t id : {0U, 0x80000000U, 0xffffffffU}) {
    const SchemaCache::Known* known = cache.Find(id);
    ASSERT_NE(known, nullptr);
    EXPECT_THAT(known->problem, ::testing::HasSubstr(std::to_string(id)));
  }
  EXPECT_TRUE(Lines().empty());
}

TEST_F(Registry, SaysWhyItGivesNothingWithoutItsPassword) {
  Answers("/base/schemas/ids/7", {{.status = 401}});
  SchemaCache cache(Options(), kQuick);
  EXPECT_EQ(cache.Find(7), nullptr);
  Soon("the reason", [&] { return !cache.Trouble().empty(); });
  EXPECT_EQ(cache.Trouble(), "/schemas/ids/7: HTTP 401");
  EXPECT_EQ(cache.Find(7), nullptr);
}

TEST_F(Registry, IsAskedThreeTimesForAnIdThatItDoesNotKnowAndAgainLater) {
  const Answer unknown{.status = 404, .body = kUnknown};
  Answers("/base/schemas/ids/7",
          {unknown, unknown, unknown, {.body = R"({"schema":"\"string\""})"}});
  SchemaCache cache(Options(), kQuick);
  EXPECT_EQ(Wait(cache, 7).problem,
            "the schema registry does not know schema id 7 (/schemas/ids/7: HTTP 404 "
            "(Schema not found))");
  EXPECT_EQ(Lines().size(), 3u);
  Soon("the schema", [&] { return Wait(cache, 7).decoder != nullptr; });
}

TEST_F(Registry, IsAskedForAllUnknownIdsAtTheSameTime) {
  const Answer unknown{.status = 404, .body = kUnknown};
  for (const char* id : {"1", "2", "3"}) Answers(std::string("/base/schemas/ids/") + id, {unknown});
  CachePauses slow = kQuick;
  slow.unknown = 50ms;
  SchemaCache cache(Options(), slow);
  for (std::uint32_t id = 1; id <= 3; ++id) cache.Find(id);
  for (std::uint32_t id = 1; id <= 3; ++id) EXPECT_NE(Wait(cache, id).problem, "");
  std::string order;
  for (const std::string& line : Lines()) order += line.substr(line.find("ids/") + 4, 1);
  EXPECT_EQ(order, "123123123");
}

TEST_F(Registry, IsAskedNoLongerForAnIdThatNobodyWaitsFor) {
  Answers("/base/schemas/ids/1", {{.status = 503}});
  CachePauses pauses = kQuick;
  pauses.drop = 200ms;
  SchemaCache cache(Options(), pauses);
  cache.Find(1);
  Soon("the trouble", [&] { return !cache.Trouble().empty(); });
  Soon("no trouble", [&] { return cache.Trouble().empty(); });
}

// Nulls take no byte in Avro and five in JSON.
TEST_F(Registry, RecordsThatBecomeLargeAreDecodedAFewAtATime) {
  Answers("/base/schemas/ids/1",
          {{.body = R"({"schema":"{\"type\":\"array\",\"items\":\"null\"}"})"}});
  const auto decoder = MakeRecordDecoder(Decoding());
  const std::string_view million("\0\0\0\0\1\x80\x89\x7a\0", 9);
  std::vector<Record> records(10, Written("k", million));
  Soon("the schema", [&] { return decoder->Decode({records.data(), 1}) == 1; });
  ASSERT_EQ(records[0].value->size(), 5'000'001u);
  EXPECT_EQ(decoder->Decode(std::span(records).subspan(1)), 4u);
}

TEST_F(Registry, ThatLagsBehindIsBelievedOnceItKnowsTheId) {
  const Answer unknown{.status = 404, .body = kUnknown};
  Answers("/base/schemas/ids/7", {unknown, unknown, {.body = R"({"schema":"\"string\""})"}});
  SchemaCache cache(Options(), kQuick);
  EXPECT_NE(Wait(cache, 7).decoder, nullptr);
}

// A cache that is closed while its question is out does not wait for the answer.
TEST_F(Registry, ThatHangsHoldsUpNoEnd) {
  StubServer hanging([this](const StubServer::Request&) {
    server_.Hold();
    return Answer{};
  });
  RegistryOptions options = Options();
  options.url = hanging.Url("");
  {
    SchemaCache cache(options, kQuick);
    EXPECT_EQ(cache.Find(7), nullptr);
    Soon("the question", [&] { return hanging.requests().size() == 1; });
  }
  server_.Release();
}

TEST_F(Registry, ARecordWaitsForItsSchemaAndThoseBehindItWait) {
  Answers("/base/schemas/ids/1", {{.body = R"({"schema":"\"string\""})"}});
  Answers("/base/schemas/ids/2", {{.status = 503}});
  const auto decoder = MakeRecordDecoder(Decoding());
  const std::string_view known("\0\0\0\0\1\2x", 7);
  const std::string_view waits("\0\0\0\0\2\2y", 7);
  std::vector<Record> records{Written("k", known), Written("k", waits), Written("k", known)};
  Soon("the first schema", [&] { return decoder->Decode(records) == 1; });
  EXPECT_EQ(records[0].value, R"("x")");
  EXPECT_EQ(records[0].key, "k");
  EXPECT_EQ(records[0].KafkaValue(), known);
  EXPECT_EQ(records[1].value, waits);
  EXPECT_EQ(records[2].value, known);
  const std::span rest = std::span(records).subspan(1);
  Soon("the reason", [&] { return !decoder->Trouble().empty(); });
  Answers("/base/schemas/ids/2", {{.body = R"({"schema":"\"string\""})"}});
  Soon("the second schema", [&] { return decoder->Decode(rest) == 2; });
  EXPECT_EQ(records[1].value, R"("y")");
  EXPECT_EQ(decoder->Trouble(), "");
}

TEST_F(Registry, WhatCannotBeDecodedKeepsItsBytesAndSaysWhy) {
  Answers("/base/schemas/ids/1", {{.body = R"({"schema":"\"string\""})"}});
  Answers("/base/schemas/ids/2",
          {{.body = R"({"schema":"syntax = \"proto3\";","schemaType":"PROTOBUF"})"}});
  Answers("/base/schemas/ids/3", {{.body = R"({"schema":"{}","schemaType":"JSON"})"}});
  const auto decoder = MakeRecordDecoder(Decoding());
  const auto problem_of = [&](std::string_view value) {
    Record record = Written("k", value);
    EXPECT_TRUE(DecodeNow(*decoder, record, 10s));
    EXPECT_EQ(record.value, value);
    EXPECT_EQ(record.KafkaKey(), "k");
    return record.problem;
  };
  EXPECT_THAT(problem_of({"\0\0\0\0\1\4x", 7}), HasSubstr("the value (schema 1) is cut off"));
  EXPECT_THAT(problem_of({"\0\0\0\0\2x", 6}), HasSubstr("it is no Protobuf schema"));
  EXPECT_THAT(problem_of({"\0\0\0\0\3{}", 7}),
              HasSubstr("schema 3, which is JSON: kafka.decode.value is avro"));
  EXPECT_THAT(problem_of("{}"), HasSubstr("the value does not begin with the magic byte"));
  Record tombstone;
  EXPECT_EQ(decoder->Decode({&tombstone, 1}), 1u);
  EXPECT_EQ(tombstone.value, std::nullopt);
  EXPECT_EQ(tombstone.problem, "");
}

TEST(RegistryOverTls, WhoseCertificateIsNotOfTheCaOrNotForItsNameIsNotAsked) {
  const testing::Certificates made("IP:127.0.0.1");
  const testing::Certificates others;
  const testing::TempDir folder;
  std::filesystem::create_directories(folder.File("schemas/ids"));
  (void)folder.Write("schemas/ids/7", R"({"schema":"\"string\""})");
  const int port = testing::FreePort();
  testing::Process server({.argv = {"openssl", "s_server", "-WWW", "-accept", std::to_string(port),
                                    "-key", made.key(), "-cert", made.certificate()},
                           .directory = folder.path().string()});
  const auto schema = [&](const std::string& host, const std::string& ca) -> std::string {
    SchemaCache cache({.url = fmt::format("https://{}:{}", host, port), .tls_ca = ca}, kQuick);
    const SchemaCache::Known* known = nullptr;
    std::string trouble;
    Soon("the schema, or a trouble that is not that the server starts", [&] {
      known = cache.Find(7);
      trouble = cache.Trouble();
      return known != nullptr || (!trouble.empty() && trouble.find("connect") == trouble.npos);
    });
    return known != nullptr ? known->problem + "got it" : trouble;
  };
  EXPECT_EQ(schema("127.0.0.1", made.ca()), "got it");
  EXPECT_THAT(schema("127.0.0.1", others.ca()), HasSubstr("certificate"));
  EXPECT_THAT(schema("127.0.0.1", ""), HasSubstr("certificate")) << "the system's CAs";
  EXPECT_THAT(schema("localhost", made.ca()), HasSubstr("localhost"));
}

TEST_F(Registry, IsNotNeededForJsonSchema) {
  const auto decoder = MakeRecordDecoder({.value = RecordFormat::kJsonSchema});
  Record record = Written("k", {"\0\0\0\0\7{\"a\":1}", 12});
  ASSERT_EQ(decoder->Decode({&record, 1}), 1u);
  EXPECT_EQ(record.value, R"({"a":1})");
  EXPECT_EQ(MakeRecordDecoder({}), nullptr);
}

}  // namespace
}  // namespace fencepost::consumer
