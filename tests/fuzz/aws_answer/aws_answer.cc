// What STS, a container's endpoint and the metadata service may answer. The first line is the
// status, the rest the body: credentials that can be sent, or one printable line.
#include <cstdlib>

#include "consumer/aws/aws_credentials.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {

using namespace consumer;

void OneInput(std::string_view input) {
  Parts parts(input);
  AwsAnswer answer{.status = std::atoi(std::string(parts.Line()).c_str())};
  answer.body = parts.rest();
  for (const std::string_view source :
       {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ""}) {
    AwsOutside outside;
    outside.variable = [&](const char* name) -> std::optional<std::string> {
      if (name == source) return "/file";
      if (std::string_view(name) == "AWS_ROLE_ARN") return "arn";
      return std::nullopt;
    };
    outside.read_file = [](const std::string&) { return std::string("token"); };
    outside.call = [&](const AwsRequest& request) {
      for (const std::string& line : request.headers) {
        FENCEPOST_CHECK(IsOneLine(line), Shown(line));
      }
      FENCEPOST_CHECK(IsOneLine(request.url), Shown(request.url));
      return answer;
    };
    const auto found = FindAwsCredentials(outside, "eu-west-1");
    if (!found) {
      FENCEPOST_CHECK(IsOneLine(found.error()), Shown(found.error()));
      continue;
    }
    const SignedUrl made = SignUrl({.host = "h"}, found->keys, {});
    FENCEPOST_CHECK(IsOneLine(made.url), Shown(made.url));
  }
}

}  // namespace fencepost::fuzz
