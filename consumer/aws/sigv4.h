// A URL that is signed by AWS Signature Version 4 in its query (a presigned URL), with the host as
// the one header that is signed. AWS's names for the steps. Pure functions; any thread.
// Source: docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fencepost::consumer {

// As AWS gives them out. `token`: of a session; empty: these are a user's own, and do not expire.
struct AwsKeys {
  std::string key_id, secret, token;
};

struct AwsUrl {
  std::string_view method = "GET";
  std::string host;
  std::string path = "/";                                    // as it is sent
  std::vector<std::pair<std::string, std::string>> query{};  // not encoded
  std::string payload;                                       // SHA-256 in hex, or as a service says
};

struct AwsScope {
  std::string region, service;
  std::chrono::sys_seconds time{};
  std::chrono::seconds expires{};  // after `time`
};

struct SignedUrl {
  std::string canonical_request, string_to_sign, signature;
  std::string url;  // https://…
};
SignedUrl SignUrl(AwsUrl url, const AwsKeys& keys, const AwsScope& scope);

// All but A-Z, a-z, 0-9, '-', '.', '_' and '~' as %XX.
std::string AwsEncoded(std::string_view text);

}  // namespace fencepost::consumer
