#include "consumer/handlers/http/retry_after.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>

namespace fencepost::consumer {

std::optional<Millis> ParseRetryAfter(const std::string& text, Millis now) {
  constexpr std::int64_t kMost = 366LL * 24 * 3600;  // seconds; nobody waits longer anyway
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (rest == end && error == std::errc()) {
    if (seconds < 0) return std::nullopt;
    return std::chrono::seconds(std::min(seconds, kMost));
  }
  if (rest == end && error == std::errc::result_out_of_range) return std::chrono::seconds(kMost);
  const time_t date = curl_getdate(text.c_str(), nullptr);
  if (date == -1) return std::nullopt;
  // libcurl takes years of up to 19 digits.
  const std::int64_t latest = std::chrono::ceil<std::chrono::seconds>(now).count() + kMost;
  const Millis wait = std::chrono::seconds(std::clamp<std::int64_t>(date, 0, latest)) - now;
  return std::clamp<Millis>(wait, Millis(0), std::chrono::seconds(kMost));
}

}  // namespace fencepost::consumer
