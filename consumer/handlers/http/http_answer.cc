#include "consumer/handlers/http/http_answer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "consumer/pipeline/error_class.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kShownBytes = 4096;  // of a body, before it is cut to one line

}  // namespace

HandlerResult ResultOf(const HttpHandlerOptions& options, HttpAnswer answer) {
  const std::string status = std::to_string(answer.status);
  if (MatchClass(options.success, status) != ClassMatch::kNone) {
    if (answer.status == 204 && answer.body.empty()) return HandlerValues{std::nullopt};
    return HandlerValues{std::move(answer.body)};
  }
  return tl::unexpected(HandlerFailure{
      .error_class = status,
      .text = OneLine(fmt::format("HTTP {}{}", status, answer.body.empty() ? "" : ": ") +
                      answer.body.substr(0, kShownBytes)),
      .shown = "HTTP " + status,
      .retry = MatchClass(options.retry_on, status) != ClassMatch::kNone,
      .retry_after = answer.retry_after});
}

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
