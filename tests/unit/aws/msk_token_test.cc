#include "consumer/aws/msk_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

constexpr const char* kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const std::chrono::sys_seconds kNow = sys_days(2026y / 11 / 28) + 12h + 34min + 56s;

std::string UrlOf(const MskToken& token) {
  std::string text = token.text;
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  text.resize((text.size() + 3) / 4 * 4, '=');
  return FromBase64(text).value_or("not base64url");
}

// What aws-msk-iam-sasl-signer-python 1.0.2 (botocore 1.44.8) prints while its clock stands still,
// but for the user agent, and for where the session's token stands, which counts for nothing.
TEST(MskToken, IsTheOneOfAmazonsSigner) {
  const std::string session =
      "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQ+BAz/scqKmlzm8FD==";
  EXPECT_EQ(UrlOf(MakeMskToken("eu-west-1", {{"AKIDEXAMPLE", kSecret, ""}, {}}, kNow)),
            "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect"
            "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261128%2Feu-west-1"
            "%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20261128T123456Z&X-Amz-Expires=900"
            "&X-Amz-SignedHeaders=host&X-Amz-Signature="
            "d0ab9c17981effb32c376e8042af796522ddfbb87ff8bbad20e9947474ade4bb"
            "&User-Agent=fencepost");
  EXPECT_EQ(
      UrlOf(MakeMskToken("us-west-2", {{"ASIDEXAMPLE", kSecret, session}, {}}, kNow)),
      "https://kafka.us-west-2.amazonaws.com/?Action=kafka-cluster%3AConnect"
      "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIDEXAMPLE%2F20261128%2Fus-west-2"
      "%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20261128T123456Z&X-Amz-Expires=900"
      "&X-Amz-Security-Token=AQoDYXdzEPT%2F%2F%2F%2F%2F%2F%2F%2F%2F%2FwEXAMPLEtc764bNrC9SAPBSM"
      "22wDOk4x4HIZ8j4FZTwdQ%2BBAz%2FscqKmlzm8FD%3D%3D&X-Amz-SignedHeaders=host"
      "&X-Amz-Signature=214a92a842a4431c35ad25889e82fd90407a993687e22f98a4192eec9fe0186d"
      "&User-Agent=fencepost");
}

TEST(MskToken, IsBase64urlWithoutPadding) {
  for (const char* id : {"A", "AB", "ABC"}) {
    const MskToken token = MakeMskToken("eu-west-1", {{id, kSecret, ""}, {}}, kNow);
    EXPECT_EQ(token.text.find_first_of("+/="), std::string::npos) << token.text;
    EXPECT_THAT(UrlOf(token), ::testing::StartsWith("https://kafka.")) << id;
  }
}

TEST(MskToken, EndsAfterAQuarterOfAnHourOrWithItsCredentials) {
  const auto ends = [](auto expires) {
    return MakeMskToken("r", {{"id", kSecret, "t"}, expires}, kNow).expires - kNow;
  };
  EXPECT_EQ(ends(std::nullopt), 900s);
  EXPECT_EQ(ends(kNow + 1h), 900s);
  EXPECT_EQ(ends(kNow + 100s), 100s);
}

TEST(MskToken, IsNotMadeOfCredentialsThatHaveExpired) {
  AwsOutside outside{.variable = [](const char* name) -> std::optional<std::string> {
                       if (std::string_view(name) == "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
                         return "/c";
                       return std::nullopt;
                     },
                     .read_file = nullptr,
                     .call =
                         [](const AwsRequest&) {
                           return AwsAnswer{
                               200,
                               R"({"AccessKeyId": "i", "SecretAccessKey": "s", "Token": "t",)"
                               R"( "Expiration": "2026-11-28T12:34:56Z"})",
                               ""};
                         }};
  EXPECT_TRUE(AskMskToken(outside, "r", kNow - 1s));
  const auto late = AskMskToken(outside, "r", kNow);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error(), "the AWS credentials have expired; is the clock right?");
}

}  // namespace
}  // namespace fencepost::consumer
