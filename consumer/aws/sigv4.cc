#include "consumer/aws/sigv4.h"

#include <algorithm>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "locking/base/check.h"
#include "locking/base/digest.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string Hmac(std::string_view key, std::string_view text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const auto* const made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                reinterpret_cast<unsigned char*>(digest.data()), &size);
  FENCEPOST_CHECK(made != nullptr, "HMAC-SHA-256");
  digest.resize(size);
  return digest;
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// 20150830T123600Z
std::string TimeText(std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace

std::string AwsEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

SignedUrl SignUrl(AwsUrl url, const AwsKeys& keys, const AwsScope& scope) {
  const std::string time = TimeText(scope.time);
  const std::string day = time.substr(0, time.find('T'));
  const std::string where = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  url.query.emplace_back("X-Amz-Algorithm", kAlgorithm);
  url.query.emplace_back("X-Amz-Credential", keys.key_id + "/" + where);
  url.query.emplace_back("X-Amz-Date", time);
  url.query.emplace_back("X-Amz-Expires", std::to_string(scope.expires.count()));
  url.query.emplace_back("X-Amz-SignedHeaders", "host");
  if (!keys.token.empty()) url.query.emplace_back("X-Amz-Security-Token", keys.token);
  for (auto& [name, value] : url.query) {
    name = AwsEncoded(name);
    value = AwsEncoded(value);
  }
  std::ranges::sort(url.query);  // as they are encoded
  std::string query;
  for (const auto& [name, value] : url.query) {
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", name, value);
  }
  SignedUrl made;
  made.canonical_request = fmt::format("{}\n{}\n{}\nhost:{}\n\nhost\n{}", url.method, url.path,
                                       query, url.host, url.payload);
  made.string_to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, where, Sha256Hex(made.canonical_request));
  std::string key = "AWS4" + keys.secret;
  for (const std::string_view part :
       {std::string_view(day), std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")}) {
    key = Hmac(key, part);
  }
  made.signature = Hex(Hmac(key, made.string_to_sign));
  made.url =
      fmt::format("https://{}{}?{}&X-Amz-Signature={}", url.host, url.path, query, made.signature);
  return made;
}

}  // namespace fencepost::consumer
