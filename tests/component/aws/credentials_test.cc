// The search for credentials by libcurl, against strict stand-ins of STS, of a container's endpoint
// and of the metadata service.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/aws/aws_credentials.h"
#include "tests/support/process.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::StubServer;
using fencepost::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

constexpr const char* kJson =
    R"({"Code": "Success", "AccessKeyId": "ASIA1", "SecretAccessKey": "s3cret", "Token": "t/+==",)"
    R"( "Expiration": "2126-11-28T12:00:00Z"})";
constexpr const char* kXml =
    "<A><Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>s3cret</SecretAccessKey>"
    "<SessionToken>t/+==</SessionToken><Expiration>2126-11-28T12:00:00Z</Expiration></Credentials>"
    "</A>";

std::string Header(const StubServer::Request& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "(none)" : found->second;
}

// The real files and calls, other variables.
std::string Found(const Variables& variables) {
  AwsOutside outside = AwsOutside::Process();
  outside.variable = [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const auto found = FindAwsCredentials(outside, "eu-west-1");
  if (!found) return found.error();
  return found->keys.key_id + " " + found->keys.secret + " " + found->keys.token;
}

std::vector<std::string> Lines(const StubServer& server) {
  std::vector<std::string> lines;
  for (const auto& request : server.requests()) lines.push_back(request.line);
  return lines;
}

TEST(AwsCalls, AskTheMetadataServiceInASession) {
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  const StubServer service([&](const StubServer::Request& request) -> StubServer::Answer {
    if (request.line == "PUT /latest/api/token HTTP/1.1") {
      const bool good = Header(request, "x-aws-ec2-metadata-token-ttl-seconds") == "60" &&
                        request.body.empty() && Header(request, "content-length") == "0" &&
                        Header(request, "content-type") == "(none)";
      return good ? StubServer::Answer{.body = "SESSION=="} : StubServer::Answer{.status = 400};
    }
    if (Header(request, "x-aws-ec2-metadata-token") != "SESSION==") return {.status = 401};
    if (request.line == "GET " + roles + " HTTP/1.1") return {.body = "billing"};
    if (request.line == "GET " + roles + "billing HTTP/1.1") return {.body = kJson};
    return {.status = 404};
  });
  EXPECT_EQ(Found({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", service.Url("")}}), "ASIA1 s3cret t/+==");
  EXPECT_THAT(Lines(service),
              ElementsAre("PUT /latest/api/token HTTP/1.1", "GET " + roles + " HTTP/1.1",
                          "GET " + roles + "billing HTTP/1.1"));
}

TEST(AwsCalls, AskStsWithTheTokenOfAFile) {
  const TempDir folder;
  const StubServer sts([](const StubServer::Request& request) -> StubServer::Answer {
    const bool good =
        request.line == "POST / HTTP/1.1" &&
        Header(request, "content-type") == "application/x-www-form-urlencoded" &&
        request.body ==
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3A"
            "role%2Forders&RoleSessionName=fencepost&WebIdentityToken=a.b-c_d";
    return good ? StubServer::Answer{.body = kXml} : StubServer::Answer{.status = 400};
  });
  EXPECT_EQ(Found({{"AWS_WEB_IDENTITY_TOKEN_FILE", folder.Write("token", "a.b-c_d\n")},
                   {"AWS_ROLE_ARN", "arn:aws:iam::1:role/orders"},
                   {"AWS_ENDPOINT_URL_STS", sts.Url("/")}}),
            "ASIA1 s3cret t/+==");
  EXPECT_EQ(Found({{"AWS_WEB_IDENTITY_TOKEN_FILE", folder.File("none")}, {"AWS_ROLE_ARN", "arn"}}),
            "by AWS_WEB_IDENTITY_TOKEN_FILE: " + folder.File("none") + " cannot be opened");
}

TEST(AwsCalls, AskAContainersEndpointWithTheTokenOfAFileAndByNoProxy) {
  const TempDir folder;
  const StubServer pod([](const StubServer::Request& request) -> StubServer::Answer {
    const bool good = request.line == "GET /v1/credentials?a=b HTTP/1.1" &&
                      Header(request, "authorization") == "pod";
    return good ? StubServer::Answer{.body = kJson} : StubServer::Answer{.status = 401};
  });
  setenv("http_proxy", "http://127.0.0.1:9", 1);
  EXPECT_EQ(Found({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", pod.Url("/v1/credentials?a=b")},
                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder.Write("token", "pod")}}),
            "ASIA1 s3cret t/+==");
  unsetenv("http_proxy");
}

TEST(AwsCalls, EndWhereAnAnswerIsNone) {
  struct Row {
    const char* name;
    StubServer::Answer answer;
    const char* problem;
    std::size_t requests;
  };
  const Row rows[] = {
      {"Refused", {.status = 403}, "HTTP 403", 1},
      {"Elsewhere", {.status = 302, .headers = {"Location: http://127.0.0.1:9/"}}, "HTTP 302", 1},
      {"Down", {.status = 503}, "HTTP 503", 2},
      {"Closed", {.status = 0}, "", 2},
      {"Endless",
       {.raw = "HTTP/1.1 200 OK\r\n\r\n", .over_and_over = std::string(1000, 'x')},
       "",
       2},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const StubServer pod([&](const StubServer::Request&) { return row.answer; });
    EXPECT_THAT(Found({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", pod.Url("/")}}),
                HasSubstr(std::string("by the container's endpoint: ") + row.problem));
    EXPECT_EQ(pod.requests().size(), row.requests);
  }
}

// A service that takes the call and is silent: twice two seconds, no more.
TEST(AwsCalls, WaitForNobodyForEver) {
  StubServer pod([&](const StubServer::Request&) -> StubServer::Answer {
    pod.Hold();
    return {};
  });
  EXPECT_THAT(Found({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", pod.Url("/")}}),
              HasSubstr("by the container's endpoint: Operation timed out"));
  EXPECT_EQ(pod.requests().size(), 2U);
}

}  // namespace
}  // namespace fencepost::consumer
