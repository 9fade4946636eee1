#include "consumer/aws/aws_credentials.h"

#include <functional>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kGood =
    R"({"Code": "Success", "AccessKeyId": "ASIA1", "SecretAccessKey": "s3cret", "Token": "t/+=",)"
    R"( "Expiration": "2026-11-28T12:00:00Z"})";
const std::string kXml =
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
    "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA1</AccessKeyId>"
    "<SecretAccessKey>s3cret</SecretAccessKey><SessionToken>t/+=</SessionToken>"
    "<Expiration>2026-11-28T12:00:00Z</Expiration></Credentials>"
    "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";

using Variables = std::map<std::string, std::string>;

const Variables kWebIdentity{{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"},
                             {"AWS_ROLE_ARN", "arn:aws:iam::1:role/a b"}};
const Variables kContainer{{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/c?id=1"}};
const Variables kInstance{};

// What the environment is, and who answers.
struct Place {
  Variables variables;
  std::function<AwsAnswer(const AwsRequest&)> answer = [](const AwsRequest&) {
    return AwsAnswer{.problem = "Connection refused"};
  };
  std::string file = "jwt.a-b_c\n";
  std::vector<AwsRequest> asked{};

  tl::expected<AwsCredentials, std::string> Find() {
    asked.clear();
    return FindAwsCredentials(
        {.variable = [this](const char* name) -> std::optional<std::string> {
           const auto found = variables.find(name);
           return found == variables.end() ? std::nullopt : std::optional(found->second);
         },
         .read_file = [this](const std::string& path) -> tl::expected<std::string, std::string> {
           if (path == "/token") return file;
           return tl::unexpected<std::string>("cannot be opened");
         },
         .call =
             [this](const AwsRequest& request) {
               asked.push_back(request);
               return answer(request);
             }},
        "eu-west-1");
  }
  std::string Problem() {
    const auto found = Find();
    return found ? "none" : found.error();
  }
};

// As AWS documents it: a token by PUT first, which both further requests carry.
AwsAnswer Metadata(const AwsRequest& request) {
  const std::string base = "http://169.254.169.254/latest/";
  if (request.url == base + "api/token") {
    const bool good =
        request.method == "PUT" && request.body.empty() &&
        request.headers == std::vector<std::string>{"X-aws-ec2-metadata-token-ttl-seconds: 60"};
    return good ? AwsAnswer{200, "SESSION==", ""} : AwsAnswer{400, "", ""};
  }
  if (request.headers != std::vector<std::string>{"X-aws-ec2-metadata-token: SESSION=="} ||
      request.method != "GET") {
    return {401, "", ""};
  }
  const std::string roles = base + "meta-data/iam/security-credentials/";
  if (request.url == roles) return {200, "billing\n", ""};
  return request.url == roles + "billing" ? AwsAnswer{200, kGood, ""} : AwsAnswer{404, "", ""};
}

void IsGood(const tl::expected<AwsCredentials, std::string>& found) {
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->keys.key_id, "ASIA1");
  EXPECT_EQ(found->keys.secret, "s3cret");
  EXPECT_EQ(found->keys.token, "t/+=");
  EXPECT_EQ(found->expires, sys_days(2026y / 11 / 28) + 12h);
}

TEST(AwsCredentials, OfTheEnvironmentComeFirstAndNobodyIsAsked) {
  Place place{{{"AWS_ACCESS_KEY_ID", "AKIA"}, {"AWS_SECRET_ACCESS_KEY", "s"}}};
  place.variables.insert(kWebIdentity.begin(), kWebIdentity.end());
  place.variables.insert(kContainer.begin(), kContainer.end());
  auto found = place.Find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->keys.key_id + found->keys.secret + found->keys.token, "AKIAs");
  EXPECT_FALSE(found->expires);
  EXPECT_TRUE(place.asked.empty());
  place.variables["AWS_SESSION_TOKEN"] = "session";
  EXPECT_EQ(place.Find()->keys.token, "session");
  place.variables.erase("AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(place.Problem(),
            "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY one is set, and not the other");
}

TEST(AwsCredentials, ByWebIdentityComeBeforeTheContainers) {
  Place place{kWebIdentity, [](const AwsRequest&) { return AwsAnswer{200, kXml, ""}; }};
  place.variables.insert(kContainer.begin(), kContainer.end());
  IsGood(place.Find());
  ASSERT_EQ(place.asked.size(), 1U);
  const AwsRequest& asked = place.asked.front();
  EXPECT_EQ(asked.method + " " + asked.url, "POST https://sts.eu-west-1.amazonaws.com/");
  EXPECT_EQ(asked.body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3A"
            "role%2Fa%20b&RoleSessionName=fencepost&WebIdentityToken=jwt.a-b_c");
  EXPECT_THAT(asked.headers, ElementsAre("Content-Type: application/x-www-form-urlencoded"));
  EXPECT_FALSE(asked.near);
}

TEST(AwsCredentials, ByWebIdentityTakeTheNamesThatAreGiven) {
  Place place{kWebIdentity, [](const AwsRequest&) { return AwsAnswer{200, kXml, ""}; }};
  place.variables["AWS_ROLE_SESSION_NAME"] = "w@1";
  place.variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:1/sts";
  IsGood(place.Find());
  EXPECT_EQ(place.asked.front().url, "http://127.0.0.1:1/sts");
  Place apart{kWebIdentity, place.answer};
  apart.variables["AWS_REGION"] = "cn-north-1";
  IsGood(apart.Find());
  EXPECT_EQ(apart.asked.front().url, "https://sts.cn-north-1.amazonaws.com.cn/")
      << "where the pod is";
  apart.variables["AWS_REGION"] = "evil.example/";
  IsGood(apart.Find());
  EXPECT_EQ(apart.asked.front().url, "https://sts.eu-west-1.amazonaws.com/");
  EXPECT_THAT(place.asked.front().body, HasSubstr("&RoleSessionName=w%401&"));
}

TEST(AwsCredentials, OfAContainerComeFromItsEndpoint) {
  struct Row {
    Variables variables;
    std::string url, authorization;
  };
  const std::string full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  const std::string file = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
  const std::string token = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
  const Row rows[] = {
      {kContainer, "http://169.254.170.2/v2/c?id=1", ""},
      {{{full, "http://169.254.170.23/v1/credentials"}, {file, "/token"}, {token, "Basic no"}},
       "http://169.254.170.23/v1/credentials",
       "jwt.a-b_c"},
      {{{full, "http://[fd00:ec2::23]/v1"}, {token, "Basic dXNlcg=="}},
       "http://[fd00:ec2::23]/v1",
       "Basic dXNlcg=="},
      {{{full, "http://127.0.0.7:80/c"}}, "http://127.0.0.7:80/c", ""},
      {{{full, "http://localhost/c"}}, "http://localhost/c", ""},
      {{{full, "https://vault.example/c"}}, "https://vault.example/c", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.url);
    Place place{row.variables, [](const AwsRequest&) { return AwsAnswer{200, kGood, ""}; }};
    IsGood(place.Find());
    ASSERT_EQ(place.asked.size(), 1U);
    EXPECT_EQ(place.asked.front().url, row.url);
    EXPECT_EQ(place.asked.front().near, row.url.starts_with("http://"));
    std::vector<std::string> headers{"Accept: application/json"};
    if (!row.authorization.empty()) headers.push_back("Authorization: " + row.authorization);
    EXPECT_EQ(place.asked.front().headers, headers);
  }
}

TEST(AwsCredentials, OfAnInstanceComeLastByASessionOfItsMetadataService) {
  Place place{kInstance, &Metadata};
  IsGood(place.Find());
  EXPECT_EQ(place.asked.size(), 3U);
  place.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://169.254.169.254/";
  IsGood(place.Find());
  place.variables.erase("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  place.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "IPv6";
  (void)place.Find();
  EXPECT_EQ(place.asked.front().url, "http://[fd00:ec2::254]/latest/api/token");
  place.variables["AWS_EC2_METADATA_DISABLED"] = "TRUE";
  EXPECT_THAT(place.Problem(), HasSubstr("AWS_EC2_METADATA_DISABLED"));
  EXPECT_TRUE(place.asked.empty());
}

TEST(AwsCredentials, AreAskedForOnceMoreWhereNobodyAnsweredOrTheServiceFailed) {
  for (const AwsAnswer& bad : {AwsAnswer{503, "", ""}, AwsAnswer{0, "", "timed out"}}) {
    int calls = 0;
    Place place{kContainer, [&](const AwsRequest&) {
                  return ++calls == 1 ? bad : AwsAnswer{200, kGood, ""};
                }};
    IsGood(place.Find());
    EXPECT_EQ(place.asked.size(), 2U);
    Place down{kContainer, [&](const AwsRequest&) { return bad; }};
    EXPECT_FALSE(down.Find());
    EXPECT_EQ(down.asked.size(), 2U) << "nobody is asked for ever";
  }
  Place refused{kContainer, [](const AwsRequest&) { return AwsAnswer{403, "", ""}; }};
  EXPECT_EQ(refused.Problem(), "by the container's endpoint: HTTP 403");
  EXPECT_EQ(refused.asked.size(), 1U) << "a refusal stays one";
}

struct Bad {
  const char* name;
  Variables variables;
  AwsAnswer answer;
  std::string problem;
  std::string file = "jwt";
};

std::vector<Bad> BadRows() {
  const std::string sts = "by AWS_WEB_IDENTITY_TOKEN_FILE: ";
  const std::string container = "by the container's endpoint: ";
  const std::string instance = "none in the environment, and by the instance's metadata service: ";
  const std::string plain =
      container +
      "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor http:// of this machine";
  const auto full = [](const char* url) {
    return Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}};
  };
  return {
      {"NoRole", {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}}, {}, sts + "AWS_ROLE_ARN is not set"},
      {"NoFile",
       {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/none"}, {"AWS_ROLE_ARN", "a"}},
       {},
       sts + "/none cannot be opened"},
      {"TokenInThePlaceOfItsFile",
       {{"AWS_WEB_IDENTITY_TOKEN_FILE", "s3cret.jwt"}, {"AWS_ROLE_ARN", "a"}},
       {},
       sts + "the file cannot be opened"},
      {"EmptyFile", kWebIdentity, {}, sts + "/token is empty", "\n"},
      {"NoTokenInFile", kWebIdentity, {}, sts + "/token is no token", "a b"},
      {"StsRefuses",
       kWebIdentity,
       {403,
        "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>s3cret"
        "</Message></Error></ErrorResponse>",
        ""},
       sts + "STS: HTTP 403 (AccessDenied)"},
      {"StsSaysAnything",
       kWebIdentity,
       {400, "<Code>s3cret &amp; more</Code>", ""},
       sts + "STS: HTTP 400"},
      {"StsWithoutASession",
       kWebIdentity,
       {200, "<AccessKeyId>a</AccessKeyId><SecretAccessKey>s</SecretAccessKey>", ""},
       sts + "STS: the answer has no SessionToken"},
      {"StsIsCutOff",
       kWebIdentity,
       {200, "<AccessKeyId>a</AccessKeyId><SecretAccessKey>s", ""},
       sts + "STS: the answer has no SecretAccessKey"},
      {"PlainToAnotherMachine", full("http://10.0.0.1/c"), {}, plain},
      {"PlainToANameLikeLoopback", full("http://127.0.0.1.evil.example/c"), {}, plain},
      {"PlainToAUserLikeLoopback", full("http://127.0.0.1@evil.example/c"), {}, plain},
      {"AnotherProtocol", full("file:///etc/passwd"), {}, plain},
      {"NoPath",
       {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.example/"}},
       {},
       container + "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no /PATH"},
      {"TokenOfTwoLines",
       {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "s3cret\r\nHost: evil"}},
       {},
       container + "AWS_CONTAINER_AUTHORIZATION_TOKEN has a line end"},
      {"ContainerRefuses",
       kContainer,
       {400, R"({"code": "NoTask", "message": "s3cret"})", ""},
       container + "HTTP 400 (NoTask)"},
      {"NotJson", kContainer, {200, "<html>s3cret", ""}, container + "the answer is not JSON"},
      {"NoKey", kContainer, {200, "{}", ""}, container + "the answer has no AccessKeyId"},
      {"NumberAsKey",
       kContainer,
       {200, R"({"AccessKeyId": 1})", ""},
       container + "the answer has no AccessKeyId"},
      {"BlankInASecret",
       kContainer,
       {200, R"({"AccessKeyId": "a", "SecretAccessKey": "s3 cret"})", ""},
       container + "the answer's SecretAccessKey is none"},
      {"NoTime",
       kContainer,
       {200, R"({"AccessKeyId": "a", "SecretAccessKey": "s", "Expiration": "soon"})", ""},
       container + "the answer's Expiration is no time"},
      {"SaysItFailed",
       kContainer,
       {200, R"({"Code": "AssumeRoleUnauthorizedAccess", "Message": "s3cret"})", ""},
       container + "it says AssumeRoleUnauthorizedAccess"},
      {"NobodyThere",
       kInstance,
       {0, "", "Connection refused"},
       instance + "Connection refused; in a container, the instance's metadata hop limit must be 2 "
                  "or more"},
      {"NoSession", kInstance, {403, "", ""}, instance + "HTTP 403"},
      {"SessionOfTwoLines", kInstance, {200, "a\r\nb", ""}, instance + "its token is none"},
  };
}

TEST(AwsCredentials, SayWhatIsWrongInOneLineWithoutASecret) {
  for (const Bad& bad : BadRows()) {
    SCOPED_TRACE(bad.name);
    Place place{bad.variables, [&](const AwsRequest&) { return bad.answer; }, bad.file};
    const std::string problem = place.Problem();
    EXPECT_EQ(problem, bad.problem);
    EXPECT_EQ(problem.find("s3cret"), std::string::npos);
  }
}

TEST(AwsCredentials, OfAnInstanceWithoutARoleSaySo) {
  for (const AwsAnswer& roles : {AwsAnswer{404, "", ""}, AwsAnswer{200, "", ""}}) {
    Place place{kInstance, [&](const AwsRequest& request) {
                  return request.method == "PUT" ? AwsAnswer{200, "T", ""} : roles;
                }};
    EXPECT_THAT(place.Problem(), HasSubstr("the instance has no role"));
  }
}

TEST(AwsCredentials, EndWhenTheAnswerSays) {
  struct Row {
    const char* text;
    std::optional<std::chrono::sys_seconds> time;
  };
  const auto noon = sys_days(2024y / 2 / 29) + 12h + 1min + 2s;
  for (const Row& row : {Row{"2024-02-29T12:01:02Z", noon}, Row{"2024-02-29T12:01:02.123Z", noon},
                         Row{"2023-02-29T12:01:02Z", {}}, Row{"2024-02-29T12:01:02", {}},
                         Row{"2024-02-29T12:01:02+01:00Z", {}},
                         Row{"2024-02-29T11:01:02-01:00", noon}, Row{"1709208062", {}}}) {
    SCOPED_TRACE(row.text);
    Place place{kContainer, [&](const AwsRequest&) {
                  return AwsAnswer{200,
                                   fmt::format(R"({{"AccessKeyId": "a", "SecretAccessKey": "s",)"
                                               R"( "Expiration": "{}"}})",
                                               row.text),
                                   ""};
                }};
    const auto found = place.Find();
    ASSERT_EQ(found.has_value(), row.time.has_value());
    EXPECT_EQ(found.value_or(AwsCredentials()).expires, row.time);
  }
}

}  // namespace
}  // namespace fencepost::consumer
