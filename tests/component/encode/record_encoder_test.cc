// Schemas for output.kafka.encode: the registry's answers, from a server that says what the test
// wants.
#include <deque>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/encode/record_encoder.h"
#include "tests/support/process.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StubServer;
using testing::WaitUntil;
using Answer = StubServer::Answer;
using namespace std::chrono_literals;

constexpr const char* kNoSubject = R"({"error_code":40401,"message":"Subject not found."})";
constexpr const char* kNoSchema = R"({"error_code":40403,"message":"Schema not found"})";

class Encoding : public ::testing::Test {
 protected:
  // The answers to this request, one after the other, the last one for ever.
  void Answers(const std::string& request, std::deque<Answer> answers) {
    const std::lock_guard lock(mutex_);
    answers_[request + " HTTP/1.1"] = std::move(answers);
  }
  [[nodiscard]] EncodeOptions Options(EncodePart value) const {
    return {.key = {}, .value = std::move(value), .registry = {.url = server_.Url("")}};
  }
  static std::string Problem(RecordEncoder& encoder) {
    const auto prepared = encoder.Prepare();
    return prepared ? "" : prepared.error().Line();
  }
  static std::string Value(RecordEncoder& encoder, std::string_view json) {
    std::string out = "what was there";
    const auto done = encoder.Value(json, out);
    return done ? out : "error: " + done.error().shown;
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

TEST_F(Encoding, TakesTheSubjectsNewestSchemaAndAsksNoMore) {
  Answers("GET /subjects/a%2Fb-value/versions/latest",
          {{.body = R"({"subject":"a/b-value","version":3,"id":258,"schema":"\"string\""})"}});
  RecordEncoder encoder(Options({.format = RecordFormat::kAvro, .subject = "a/b-value"}));
  EXPECT_EQ(Problem(encoder), "");
  EXPECT_EQ(Problem(encoder), "");
  EXPECT_EQ(Value(encoder, R"("x")"), std::string("\0\0\0\1\2\2x", 7));
  EXPECT_EQ(Value(encoder, "5"), "error: is a number, and the schema has a text");
  EXPECT_EQ(Lines().size(), 1u);
  EXPECT_FALSE(encoder.HasKey());
}

TEST_F(Encoding, TakesTheVersionThatIsNamed) {
  Answers("GET /subjects/s/versions/2",
          {{.body = R"({"id":7,"schemaType":"PROTOBUF",)"
                    R"("schema":"syntax = \"proto3\"; message A { int32 n = 1; }"})"}});
  RecordEncoder encoder(Options({.format = RecordFormat::kProtobuf, .subject = "s", .version = 2}));
  EXPECT_EQ(Problem(encoder), "");
  EXPECT_EQ(Value(encoder, R"({"n":5})"), std::string("\0\0\0\0\7\0\x08\x05", 8));
}

TEST_F(Encoding, ASubjectThatIsNotThereIsAskedForAgain) {
  Answers("GET /subjects/s/versions/latest", {{.status = 404, .body = kNoSubject},
                                              {.status = 503},
                                              {.body = R"({"id":7,"schema":"\"int\""})"}});
  RecordEncoder encoder(Options({.format = RecordFormat::kAvro, .subject = "s"}));
  EXPECT_EQ(Problem(encoder),
            "output.kafka.encode.value: the schema registry has no version of subject 's'; "
            "register it, it is looked for again by itself");
  EXPECT_THAT(Problem(encoder), HasSubstr("/subjects/s/versions/latest: HTTP 503"));
  EXPECT_EQ(Problem(encoder), "");
}

TEST_F(Encoding, ASchemaOfAnotherKindIsNamed) {
  Answers("GET /subjects/s/versions/latest",
          {{.body = R"({"id":7,"schemaType":"JSON","schema":"{}"})"},
           {.body = R"({"id":7,"schema":"\"nothing\""})"},
           {.body = R"({"schema":"\"int\""})"}});
  RecordEncoder encoder(Options({.format = RecordFormat::kAvro, .subject = "s"}));
  EXPECT_THAT(Problem(encoder), HasSubstr("schema 7 of subject 's' is JSON"));
  EXPECT_THAT(Problem(encoder), HasSubstr("it is no Avro schema: the type nothing"));
  EXPECT_THAT(Problem(encoder), HasSubstr("not that of a schema registry")) << "without an id";
}

TEST_F(Encoding, ASchemaOfOnesOwnIsLookedUpAndRegisteredOnlyWhereThatWasAskedFor) {
  Answers("POST /subjects/s", {{.status = 404, .body = kNoSchema}});
  Answers("POST /subjects/s/versions",
          {{.status = 409, .body = R"({"error_code":409,"message":"Schema is incompatible"})"},
           {.body = R"({"id":9})"}});
  EncodePart part{.format = RecordFormat::kJsonSchema, .subject = "s", .schema = R"({"a":1})"};
  RecordEncoder reader(Options(part));
  EXPECT_THAT(Problem(reader), HasSubstr("subject 's' of the schema registry does not have this"));
  EXPECT_EQ(Lines().size(), 1u);
  EXPECT_EQ(server_.requests()[0].body, R"({"schema":"{\"a\":1}","schemaType":"JSON"})");
  part.register_schema = true;
  RecordEncoder writer(Options(part));
  EXPECT_THAT(Problem(writer), HasSubstr("HTTP 409 (Schema is incompatible)"));
  EXPECT_EQ(Problem(writer), "");
  EXPECT_EQ(Value(writer, "{}"), std::string("\0\0\0\0\x09{}", 7));
  EXPECT_THAT(Lines(),
              ElementsAre("POST /subjects/s HTTP/1.1", "POST /subjects/s HTTP/1.1",
                          "POST /subjects/s/versions HTTP/1.1", "POST /subjects/s HTTP/1.1",
                          "POST /subjects/s/versions HTTP/1.1"));
}

TEST_F(Encoding, ASchemaThatIsThereIsNotRegistered) {
  Answers("POST /subjects/s", {{.body = R"({"subject":"s","version":1,"id":4,"schema":"x"})"}});
  RecordEncoder encoder(Options({.format = RecordFormat::kAvro,
                                 .subject = "s",
                                 .schema = R"("int")",
                                 .register_schema = true}));
  EXPECT_EQ(Problem(encoder), "");
  EXPECT_EQ(Value(encoder, "1"), std::string("\0\0\0\0\4\2", 6));
  EXPECT_THAT(Lines(), ElementsAre("POST /subjects/s HTTP/1.1"));
}

// The end of a worker does not wait for a registry that hangs.
TEST_F(Encoding, ARegistryThatHangsHoldsUpNoEnd) {
  StubServer hanging([this](const StubServer::Request&) {
    server_.Hold();
    return Answer{};
  });
  EncodeOptions options = Options({.format = RecordFormat::kAvro, .subject = "s"});
  options.registry.url = hanging.Url("");
  RecordEncoder encoder(options);
  std::thread preparing([&] { EXPECT_NE(Problem(encoder), ""); });
  EXPECT_TRUE(WaitUntil(
      10s, [&] { return hanging.requests().size() == 1; }, "the question"));
  encoder.Cancel();
  preparing.join();
  server_.Release();
}

}  // namespace
}  // namespace fencepost::consumer
