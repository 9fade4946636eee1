// The token of a handler's calls, in virtual time.
#include "consumer/handlers/http/oauth_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class Token : public ::testing::Test {
 protected:
  void Ask() {
    ASSERT_TRUE(token.Due(now));
    token.OnAsked();
    EXPECT_FALSE(token.Due(now)) << "once for all that wait";
  }
  // What the endpoint answers, and what comes of it.
  std::string Answered(const std::string& body, int status = 200) {
    return token.OnAnswer(status, body, now);
  }
  void Get(const std::string& text, const std::string& more = "") {
    Ask();
    ASSERT_EQ(
        Answered(fmt::format(R"({{"access_token":"{}","token_type":"Bearer"{}}})", text, more)),
        "");
  }
  [[nodiscard]] std::string Current() const {
    const std::string* const current = token.Current(now);
    return current == nullptr ? "none" : *current;
  }

  OauthToken::Time now{1000s};
  OauthToken token;
};

TEST_F(Token, IsAskedForOnceAndUsedUntilItExpires) {
  EXPECT_EQ(Current(), "none");
  Get("t1", R"(,"expires_in":60)");
  EXPECT_EQ(Current(), "t1");
  EXPECT_FALSE(token.Due(now));
  now += 60s;
  EXPECT_EQ(Current(), "none");
}

TEST_F(Token, IsRenewedBeforeItExpiresWhileTheFormerOneIsUsed) {
  struct Row {
    const char* expires_in;
    std::chrono::seconds renewed_after;
  };
  for (const Row& row : {Row{"60", 45s}, Row{"3600", 3570s}, Row{"\"3600\"", 3570s},
                         Row{"3.6e3", 3570s}, Row{"8", 6s}}) {
    token = {};
    Get("t1", fmt::format(R"(,"expires_in":{})", row.expires_in));
    now += row.renewed_after - 1ms;
    EXPECT_FALSE(token.Due(now)) << row.expires_in;
    now += 1ms;
    Get("t2", R"(,"expires_in":60)");
    EXPECT_EQ(Current(), "t2") << row.expires_in;
  }
}

TEST_F(Token, ThatIsNotRenewedIsUsedUntilItExpiresAndAskedForOnceASecond) {
  Get("t1", R"(,"expires_in":60)");
  now += 45s;
  for (int i = 0; i < 15; ++i) {
    Ask();
    token.OnFailed(now);
    EXPECT_FALSE(token.Due(now));
    EXPECT_EQ(Current(), "t1");
    now += 1s;
  }
  EXPECT_EQ(Current(), "none");
  Ask();
  token.OnFailed(now);
  EXPECT_TRUE(token.Due(now)) << "a call that waits asks at once";
}

TEST_F(Token, WhoseEndIsNotKnownIsUsedUntilTheServiceRefusesIt) {
  for (const char* more : {"", R"(,"expires_in":null)", R"(,"expires_in":0)", R"(,"expires_in":-1)",
                           R"(,"expires_in":"soon")", R"(,"expires_in":{})"}) {
    token = {};
    Get("t1", more);
    now += 1000h;
    EXPECT_EQ(Current(), "t1") << more;
    EXPECT_FALSE(token.Due(now)) << more;
    token.OnRefused(token.number());
    EXPECT_EQ(Current(), "none") << more;
    Get("t2");
  }
}

TEST_F(Token, ThatIsRefusedIsNotTheOneThatCameSince) {
  Get("t1");
  const auto first = token.number();
  token.OnRefused(first);
  Get("t2");
  token.OnRefused(first);
  EXPECT_EQ(Current(), "t2");
}

TEST_F(Token, IsNoneWhereTheAnswerHasNoneAndTheWordsSayWhyWithoutASecret) {
  struct Row {
    int status;
    const char* body;
    const char* why;
  };
  for (const Row& row : {
           Row{200, R"({"access_token":"s3cret)", "its answer is not JSON"},
           Row{200, "<html>s3cret</html>", "its answer is not JSON"},
           Row{200, "", "its answer is not JSON"},
           Row{200, R"("s3cret")", "its answer has no access_token"},
           Row{200, R"({"token":"s3cret"})", "its answer has no access_token"},
           Row{200, R"({"access_token":""})", "its answer has no access_token"},
           Row{200, R"({"access_token":["s3cret"]})", "its answer has no access_token"},
           Row{200, R"({"access_token":7})", "its answer has no access_token"},
           Row{200, R"({"access_token":"s3cret\r\nX-Evil: 1"})",
               "its access_token has a character that no header may have"},
           Row{200, R"({"access_token":"s3\u0000cret"})",
               "its access_token has a character that no header may have"},
           Row{200, R"({"access_token":"s3 cret"})",
               "its access_token has a character that no header may have"},
           Row{200, R"({"access_token":"s3cret","token_type":"mac"})",
               "its token_type is not Bearer"},
           Row{400, R"({"error":"invalid_client"})", "HTTP 400 (invalid_client)"},
           Row{401, R"({"error":"invalid_client","error_description":"s3cret"})",
               "HTTP 401 (invalid_client)"},
           Row{401, R"({"error":"s3cret"})", "HTTP 401"},
           Row{302, "", "HTTP 302"},
           Row{503, "s3cret", "HTTP 503"},
       }) {
    token = {};
    Ask();
    const std::string why = Answered(row.body, row.status);
    EXPECT_EQ(why, row.why) << row.body;
    EXPECT_THAT(why, Not(HasSubstr("s3")));
    EXPECT_EQ(Current(), "none");
    EXPECT_TRUE(token.Due(now));
  }
}

TEST_F(Token, IsOfTheTypeBearerInAnyCaseOrOfNoneThatIsNamed) {
  for (const char* type : {R"(,"token_type":"bearer")", R"(,"token_type":"BEARER")", ""}) {
    token = {};
    Ask();
    EXPECT_EQ(Answered(fmt::format(R"({{"access_token":"t1"{}}})", type)), "") << type;
    EXPECT_EQ(Current(), "t1");
  }
}

TEST(OauthRequest, IsWhatTheStandardsWrite) {
  EXPECT_EQ(OauthToken::FormEncoded(" %&+£€"), "+%25%26%2B%C2%A3%E2%82%AC") << "RFC 6749, B";
  EXPECT_EQ(OauthToken::FormEncoded("a-Z_0.9*:/~"), "a-Z_0.9*%3A%2F%7E");
  EXPECT_EQ(OauthToken::BodyOf({}), "grant_type=client_credentials");
  EXPECT_EQ(OauthToken::BodyOf({.scope = "read write"}),
            "grant_type=client_credentials&scope=read+write");
}

}  // namespace
}  // namespace fencepost::consumer
