// Which failures are tried again, and the texts that failures are made of.
#include "consumer/flow/ports/retry.h"
#include "consumer/json/json_text.h"
#include "consumer/pipeline/error_class.h"
#include "consumer/record/text.h"
#include "consumer/worker/worker_parts.h"
#include "tests/component/handlers/runner_fixture.h"

namespace fencepost::consumer {
namespace {

bool Again(const std::string& error_class, std::vector<ErrorClass> never,
           std::vector<ErrorClass> retry_on = {"408", "429", "5xx"}) {
  return MayRetry({.kind = HttpHandlerOptions{.retry_on = std::move(retry_on)}},
                  {.never = std::move(never)}, {.error_class = error_class});
}

TEST(ErrorClasses, MatchByWordByStatusAndByHundred) {
  EXPECT_EQ(MatchClass({"404"}, "404"), ClassMatch::kExact);
  EXPECT_EQ(MatchClass({"4xx", "404"}, "404"), ClassMatch::kExact);
  EXPECT_EQ(MatchClass({"4xx"}, "404"), ClassMatch::kStatusClass);
  EXPECT_EQ(MatchClass({"5xx"}, "404"), ClassMatch::kNone);
  EXPECT_EQ(MatchClass({"timeout"}, "timeout"), ClassMatch::kExact);
  EXPECT_EQ(MatchClass({"4xx"}, "4ab"), ClassMatch::kNone);
  EXPECT_EQ(MatchClass({"4xx"}, "4040"), ClassMatch::kNone);
  EXPECT_EQ(MatchClass({}, "404"), ClassMatch::kNone);
}

TEST(Retry, IsForbiddenByNeverAndByTheFailureItself) {
  EXPECT_TRUE(Again("503", {}));
  EXPECT_TRUE(Again("503", {"4xx"}));
  EXPECT_FALSE(Again("503", {"503"}));
  EXPECT_FALSE(Again("503", {"5xx"}));
  EXPECT_FALSE(Again("timeout", {"timeout"}));
  EXPECT_FALSE(Again("404", {"4xx"}));
  EXPECT_TRUE(Again("401", {"4xx"})) << "about the caller";
  EXPECT_FALSE(Again("401", {"401"}));
  EXPECT_FALSE(Again("302", {"3xx"}));
  EXPECT_FALSE(MayRetry({}, {}, {.error_class = "jq", .retry = false}));
}

TEST(Retry, OfAStatusThatRetryOnNamesExactlyBeatsAHundredInNever) {
  EXPECT_TRUE(Again("429", {"4xx"}));
  EXPECT_FALSE(Again("429", {"429"}));
  EXPECT_FALSE(Again("429", {"4xx"}, {"4xx"}));
  EXPECT_FALSE(
      MayRetry({.kind = ExecHandlerOptions{}}, {.never = {"4xx"}}, {.error_class = "429"}));
}

TEST(Runners, AreMadeOnlyWhereThereIsAHandler) {
  Recorder recorder;
  EXPECT_EQ(MakeHandlerRunner({}, "p", 1, &recorder, [](HandlerAnswer) {}), nullptr);
}

TEST(OneLine, HasNoControlCharactersAndNoBrokenCharacters) {
  EXPECT_EQ(OneLine("  a\r\n\tb \x7f c\xc2\x85"), "a b c");
  EXPECT_EQ(OneLine(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(OneLine("\xff\xc3 \xc3\xbc \xe2\x82"), "?? \xc3\xbc ??");
  EXPECT_EQ(OneLine(""), "");
}

TEST(OneLine, IsCutBetweenTwoCharacters) {
  EXPECT_EQ(OneLine("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(OneLine("abcdefghi", 8), "abcde...");
  EXPECT_EQ(OneLine("abcd\xc3\xbc\xc3\xbc\xc3\xbc", 8), "abcd...");
  EXPECT_EQ(OneLine("abcdefgh      ", 8), "abcdefgh");
}

TEST(Base64, ComesBackAsItWent) {
  for (std::string bytes; bytes.size() < 20;
       bytes.push_back(static_cast<char>(bytes.size() * 37))) {
    EXPECT_EQ(FromBase64(ToBase64(bytes)), bytes);
  }
  for (const char* bad : {"a", "====", "a===", "ab=c", "ab c", "abcd\n", "ab\xff="}) {
    EXPECT_EQ(FromBase64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace fencepost::consumer
