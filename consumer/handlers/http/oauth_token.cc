#include "consumer/handlers/http/oauth_token.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_reader.h"
#include "consumer/record/text.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using std::chrono::seconds;
using Duration = OauthToken::Time::duration;

constexpr seconds kRenewBefore{30};  // at most: a quarter of its life
// Of a life: a call must be able to carry it; as good as for ever.
constexpr double kLeastSeconds = 1;
constexpr double kMostSeconds = 1e9;
constexpr seconds kAskAgain{1};  // after a renewal that failed

// Of RFC 6749, 5.2: other texts may be anything.
constexpr std::array<std::string_view, 6> kErrors{"invalid_request", "invalid_client",
                                                  "invalid_grant",   "unauthorized_client",
                                                  "invalid_scope",   "unsupported_grant_type"};

std::optional<std::string> TextAt(JsonReader& reader, std::string_view pointer) {
  std::string text;
  if (reader.Append(pointer, text) != JsonFound::kValue) return std::nullopt;
  if (reader.type() != JsonType::kString) return std::nullopt;
  return text;
}

// Some write the number as a text.
std::optional<Duration> LifeOf(JsonReader& reader) {
  std::string text;
  if (reader.Append("/expires_in", text) != JsonFound::kValue) return std::nullopt;
  double life = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), life);
  if (error != std::errc() || end != text.data() + text.size() || !(life > 0)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(life, kLeastSeconds, kMostSeconds)));
}

bool IsBearer(std::string_view type) {
  constexpr std::string_view kBearer = "bearer";
  return std::ranges::equal(type, kBearer, [](char a, char b) { return (a | 0x20) == b; });
}

}  // namespace

std::string OauthToken::FormEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._*").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else if (c == ' ') {
      encoded += '+';
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string OauthToken::BodyOf(const OauthOptions& options) {
  std::string body = "grant_type=client_credentials";
  if (!options.scope.empty()) body += "&scope=" + FormEncoded(options.scope);
  return body;
}

const std::string* OauthToken::Current(Time now) const {
  const bool expired = now >= expires_ && !Planted("expired_token_is_used");
  return token_.empty() || expired ? nullptr : &token_;
}

bool OauthToken::Due(Time now) const {
  return !asking_ && (now >= renew_ || Current(now) == nullptr);
}

std::string OauthToken::OnAnswer(int status, std::string_view body, Time now) {
  std::string problem = Take(status, body, now);
  if (!problem.empty()) OnFailed(now);
  asking_ = false;
  return problem;
}

void OauthToken::OnFailed(Time now) {
  asking_ = false;
  if (renew_ != Time::max()) renew_ = now + kAskAgain;
}

void OauthToken::OnRefused(std::uint64_t number) {
  if (number == number_) token_.clear();
}

std::string OauthToken::Take(int status, std::string_view body, Time now) {
  JsonReader reader;
  reader.Begin(body);
  if (status / 100 != 2) {
    const std::string error = TextAt(reader, "/error").value_or("");
    const bool known = std::ranges::find(kErrors, error) != kErrors.end();
    return fmt::format("HTTP {}{}", status, known ? " (" + error + ")" : "");
  }
  std::string ignored;
  if (reader.Append("", ignored) == JsonFound::kMalformed) return "its answer is not JSON";
  std::optional<std::string> token = TextAt(reader, "/access_token");
  if (!token || token->empty()) return "its answer has no access_token";
  if (!IsVisible(*token)) return "its access_token has a character that no header may have";
  if (!IsBearer(TextAt(reader, "/token_type").value_or("bearer"))) {
    return "its token_type is not Bearer";
  }
  token_ = std::move(*token);
  ++number_;
  const auto life = LifeOf(reader);
  expires_ = life ? now + *life : Time::max();
  renew_ = life ? expires_ - std::min<Duration>(kRenewBefore, *life / 4) : Time::max();
  return "";
}

}  // namespace fencepost::consumer
