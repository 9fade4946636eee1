#include "consumer/aws/msk_token.h"

#include <algorithm>

#include <fmt/format.h>

#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::seconds kLife{900};
constexpr const char* kOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";  // SHA-256

std::string ToBase64Url(std::string_view bytes) {
  std::string text = ToBase64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

}  // namespace

MskToken MakeMskToken(std::string_view region, const AwsCredentials& credentials,
                      std::chrono::sys_seconds now) {
  const SignedUrl made = SignUrl(
      {.host = fmt::format("kafka.{}.amazonaws.com", region),
       .query = {{"Action", "kafka-cluster:Connect"}},
       .payload = kOfNothing},
      credentials.keys,
      {.region = std::string(region), .service = "kafka-cluster", .time = now, .expires = kLife});
  return {.text = ToBase64Url(made.url + "&User-Agent=fencepost"),
          .expires = std::min(now + kLife, credentials.expires.value_or(now + kLife))};
}

tl::expected<MskToken, std::string> AskMskToken(const AwsOutside& outside, std::string_view region,
                                                std::chrono::sys_seconds now) {
  const auto credentials = FindAwsCredentials(outside, region);
  if (!credentials) return tl::unexpected("no AWS credentials: " + credentials.error());
  if (credentials->expires && *credentials->expires <= now) {
    return tl::unexpected<std::string>("the AWS credentials have expired; is the clock right?");
  }
  return MakeMskToken(region, *credentials, now);
}

}  // namespace fencepost::consumer
