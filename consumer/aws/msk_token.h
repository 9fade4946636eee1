// The token with which a client logs in at Amazon MSK (SASL OAUTHBEARER): a presigned URL of
// kafka-cluster:Connect, as AWS's signers make it (github.com/aws/aws-msk-iam-sasl-signer-go).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/aws/aws_credentials.h"

namespace fencepost::consumer {

struct MskToken {
  std::string text;                  // base64url without padding
  std::chrono::sys_seconds expires;  // with its credentials at the latest
};

// Pure.
MskToken MakeMskToken(std::string_view region, const AwsCredentials& credentials,
                      std::chrono::sys_seconds now);

// By new credentials. Error and threads: as FindAwsCredentials.
tl::expected<MskToken, std::string> AskMskToken(const AwsOutside& outside, std::string_view region,
                                                std::chrono::sys_seconds now);

}  // namespace fencepost::consumer
