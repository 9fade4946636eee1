#include "consumer/handlers/http/http_answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>
#include <zlib.h>

#include "consumer/handlers/runner.h"
#include "consumer/pipeline/error_class.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kShownBytes = 4096;  // of a body, before it is cut to one line

using Body = tl::expected<std::string, HandlerFailure>;

Body NotDecoded(const HttpAnswer& answer, std::string_view why) {
  // What else it is may be of the record.
  constexpr std::array<std::string_view, 6> kNames{"br",   "compress", "deflate",
                                                   "gzip", "x-gzip",   "zstd"};
  const bool known = std::ranges::find(kNames, answer.encoding) != kNames.end();
  const auto told = [&](std::string_view encoding) {
    return fmt::format("HTTP {}: the answer's Content-Encoding is {}, {}", answer.status, encoding,
                       why);
  };
  return tl::unexpected(HandlerFailure{.error_class = "connection",
                                       .text = told(OneLine(answer.encoding, 100)),
                                       .shown = told(known ? answer.encoding : "unknown")});
}

// Some servers send deflate without zlib's two bytes in front (RFC 9110, 8.4.1.2).
bool HasZlibHeader(std::string_view body) {
  if (body.size() < 2) return false;
  const auto byte = [&](int at) { return static_cast<unsigned char>(body[at]); };
  return (byte(0) & 0x0f) == Z_DEFLATED && (byte(0) << 8 | byte(1)) % 31 == 0;
}

Body Inflated(const HttpAnswer& answer, int window) {
  z_stream stream{};
  FENCEPOST_CHECK(inflateInit2(&stream, window) == Z_OK, "inflateInit2");
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(answer.body.data()));
  stream.avail_in = static_cast<uInt>(answer.body.size());
  std::string body;
  std::array<Bytef, 64 << 10> block;
  while (true) {
    stream.next_out = block.data();
    stream.avail_out = block.size();
    const int state = inflate(&stream, Z_NO_FLUSH);
    if (state == Z_BUF_ERROR) return NotDecoded(answer, "and it is cut off");
    if (state != Z_OK && state != Z_STREAM_END) return NotDecoded(answer, "and its bytes are not");
    body.append(reinterpret_cast<char*>(block.data()), block.size() - stream.avail_out);
    if (body.size() > kMaxAnswerBytes) {
      return tl::unexpected(
          TooLarge(fmt::format("the decoded answer (HTTP {})", answer.status)).error());
    }
    if (state != Z_STREAM_END) continue;
    if (stream.avail_in == 0) return body;
    inflateReset(&stream);  // gzip may have several members
  }
}

Body Decoded(HttpAnswer& answer) {
  constexpr int kGzip = 16;  // zlib's words for its forms
  std::string encoding = answer.encoding;
  std::ranges::transform(encoding, encoding.begin(), [](char c) { return std::tolower(c); });
  if (answer.body.empty() || encoding.empty() || encoding == "identity") {
    return std::move(answer.body);
  }
  if (encoding == "gzip" || encoding == "x-gzip") return Inflated(answer, kGzip + MAX_WBITS);
  if (encoding != "deflate") return NotDecoded(answer, "and only gzip and deflate are decoded");
  return Inflated(answer, HasZlibHeader(answer.body) ? MAX_WBITS : -MAX_WBITS);
}

}  // namespace

AnswerBody BodyOf(const HttpHandlerOptions& options, HttpAnswer answer) {
  const std::string status = std::to_string(answer.status);
  const bool good = MatchClass(options.success, status) != ClassMatch::kNone;
  if (good && !ReadsAnswer(options)) return std::nullopt;
  Body body = Decoded(answer);
  if (good) {
    if (!body) return tl::unexpected(std::move(body.error()));
    if (answer.status == 204 && body->empty()) return std::nullopt;
    return std::move(*body);
  }
  const std::string said = std::move(body).value_or("");
  return tl::unexpected(
      HandlerFailure{.error_class = status,
                     .text = OneLine(fmt::format("HTTP {}{}", status, said.empty() ? "" : ": ") +
                                     said.substr(0, kShownBytes)),
                     .shown = "HTTP " + status,
                     .retry = MatchClass(options.retry_on, status) != ClassMatch::kNone ||
                              IsAboutTheCaller(status),
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
