// Where a program's AWS credentials come from, looked for as AWS's SDKs do, without their profile
// files. What is configured and fails is an error, and the next source is not asked:
// - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN where there is a session
// - AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN (EKS): by AssumeRoleWithWebIdentity of STS
// - AWS_CONTAINER_CREDENTIALS_RELATIVE_URI (ECS) or …_FULL_URI (EKS Pod Identity), with
//   AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or …_TOKEN
// - the instance's metadata service, version 2 alone (EC2), unless AWS_EC2_METADATA_DISABLED
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/aws/aws_outside.h"
#include "consumer/aws/sigv4.h"

namespace fencepost::consumer {

struct AwsCredentials {
  AwsKeys keys;
  std::optional<std::chrono::sys_seconds> expires;  // nullopt: never
};

// It becomes part of hosts' names: a-z, 0-9 and -.
bool IsAwsRegion(std::string_view text);

// Asks each place at most twice. Error: why there are none, in one line without a secret. `region`:
// whose STS is asked, where AWS_REGION does not say it. Any thread; blocks as `outside` does.
tl::expected<AwsCredentials, std::string> FindAwsCredentials(const AwsOutside& outside,
                                                             std::string_view region);

}  // namespace fencepost::consumer
