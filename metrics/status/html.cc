#include "metrics/status/html.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "locking/base/time_text.h"

namespace fencepost::metrics {

namespace {

constexpr std::pair<char, std::string_view> kEscapes[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

}  // namespace

std::string EscapeHtml(std::string_view text) {
  // dump replaces what is not UTF-8; the quotes and escapes around it come off again.
  const std::string clean =
      nlohmann::json::parse(nlohmann::json(std::string(text))
                                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
          .get<std::string>();
  std::string out;
  out.reserve(clean.size());
  for (const char c : clean) {
    const auto* const escape =
        std::ranges::find(kEscapes, c, &std::pair<char, std::string_view>::first);
    out += escape == std::end(kEscapes) ? std::string_view(&c, 1) : escape->second;
  }
  return out;
}

std::string CodeInText(std::string_view text) {
  std::string out;
  bool open = false;
  for (const char c : EscapeHtml(text)) {
    if (c == '`') {
      out += open ? "</code>" : "<code>";
      open = !open;
    } else {
      out += c;
    }
  }
  return open ? out + "</code>" : out;
}

std::string ShowNumber(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}
std::string ShowNumber(std::uint64_t value) { return ShowNumber(static_cast<std::int64_t>(value)); }

std::string ShowRate(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : ShowNumber(static_cast<std::int64_t>(value));
}

std::string ShowBytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string ShowTime(std::chrono::milliseconds unix_time) {
  const std::string full = Rfc3339(unix_time);  // 2026-11-22T00:04:12.345Z
  return full.substr(0, 10) + " " + full.substr(11, 8);
}

std::string OldestText(const consumer::PartitionStatus& row) {
  std::string text = row.oldest_stage;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(row.oldest_for).count();
  if (seconds > 0) text += fmt::format(", for {} s", seconds);
  if (row.finished_behind > 0) {
    text += fmt::format("; {} finished record{} behind it",
                        ShowNumber(static_cast<std::uint64_t>(row.finished_behind)),
                        row.finished_behind == 1 ? "" : "s");
  }
  return text;
}

std::string Tag(std::string_view kind, std::string_view text) {
  return fmt::format(R"(<span class="tag {}">{}</span>)", kind, EscapeHtml(text));
}

}  // namespace fencepost::metrics
