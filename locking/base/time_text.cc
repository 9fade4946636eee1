#include "locking/base/time_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fencepost {
namespace {

// Goes through an ISO 8601 text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool AtEnd() const { return at_ == text_.size(); }
  bool TakeAny(std::string_view of) {
    if (AtEnd() || of.find(text_[at_]) == std::string_view::npos) return false;
    ++at_;
    return true;
  }
  std::optional<std::chrono::sys_days> Date() {
    const auto year = Digits(4);
    const auto month = TakeAny("-") ? Digits(2) : std::nullopt;
    const auto day = TakeAny("-") ? Digits(2) : std::nullopt;
    if (!year || !month || !day) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days(date);
  }
  // Its fraction goes into `out`.
  std::optional<std::chrono::seconds> TimeOfDay(DateTime& out) {
    const auto hour = Digits(2);
    const auto minute = TakeAny(":") ? Digits(2) : std::nullopt;
    if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
    const auto time = std::chrono::hours(*hour) + std::chrono::minutes(*minute);
    if (!TakeAny(":")) return time;
    const auto second = Digits(2);
    if (!second || *second > 59 || !Fraction(out)) return std::nullopt;
    return time + std::chrono::seconds(*second);
  }
  std::optional<std::chrono::minutes> OffsetOf(DateTime& out) {
    const bool plus = out.has_time && TakeAny("+");
    if (!plus && !(out.has_time && TakeAny("-"))) {
      out.has_offset = TakeAny("Zz");
      return std::chrono::minutes(0);
    }
    out.has_offset = true;
    const auto hours = Digits(2);
    const auto minutes = TakeAny(":") || !AtEnd() ? Digits(2) : std::optional(0);
    if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    return std::chrono::minutes((plus ? 1 : -1) * (*hours * 60 + *minutes));
  }

 private:
  std::optional<int> Digits(std::size_t count) {
    int number = 0;
    for (std::size_t i = 0; i < count; ++i, ++at_) {
      if (AtEnd() || text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
      number = number * 10 + (text_[at_] - '0');
    }
    return number;
  }
  bool Fraction(DateTime& out) {
    if (!TakeAny(".")) return true;
    std::uint32_t nanos = 0;
    for (int i = 0; i < 9; ++i) {
      const bool digit = !AtEnd() && text_[at_] >= '0' && text_[at_] <= '9';
      nanos = nanos * 10 + static_cast<std::uint32_t>(digit ? text_[at_++] - '0' : 0);
      if (digit) ++out.digits;
    }
    out.point.nanos = nanos;
    return out.digits > 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string Rfc3339(std::chrono::milliseconds unix_time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(unix_time);
  const std::chrono::nanoseconds rest = unix_time - seconds;
  // Kafka takes any number of milliseconds; chrono's years have 16 bits.
  if (seconds.count() < kYear1 || seconds.count() > kYear9999) {
    return fmt::format("{} ms", unix_time.count());
  }
  std::string text;
  AppendDateTime({seconds.count(), static_cast<std::uint32_t>(rest.count())}, 'T', 3, text);
  return text + "Z";
}

std::string SpanText(std::chrono::milliseconds span) {
  if (span.count() < 0) return "-" + SpanText(-span);
  if (span.count() < 1000) return fmt::format("{} ms", span.count());
  using Unit = std::pair<std::int64_t, std::string_view>;  // so many seconds
  static constexpr std::array<Unit, 4> kUnits{{{86'400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  const std::int64_t seconds = span.count() / 1000;
  const auto unit = std::ranges::find_if(kUnits, [&](Unit one) { return one.first <= seconds; });
  std::string text = fmt::format("{} {}", seconds / unit->first, unit->second);
  const auto smaller = std::next(unit);
  const auto rest = smaller == kUnits.end() ? 0 : seconds % unit->first / smaller->first;
  if (rest > 0) text += fmt::format(" {} {}", rest, smaller->second);
  return text;
}

void AppendDate(const PointInTime& point, std::string& out) {
  const auto day = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_seconds(std::chrono::seconds(point.seconds)));
  const std::chrono::year_month_day date(day);
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

void AppendDateTime(const PointInTime& point, char between, int digits, std::string& out) {
  AppendDate(point, out);
  const std::chrono::sys_seconds at(std::chrono::seconds(point.seconds));
  const std::chrono::hh_mm_ss time(at - std::chrono::floor<std::chrono::days>(at));
  fmt::format_to(std::back_inserter(out), "{}{:02}:{:02}:{:02}", between, time.hours().count(),
                 time.minutes().count(), time.seconds().count());
  if (digits == 0) return;
  const std::string fraction = fmt::format("{:09}", point.nanos);
  out.append(".").append(fraction, 0, static_cast<std::size_t>(digits));
}

std::optional<DateTime> ParseIso(std::string_view text) {
  DateTime out;
  Reader in(text);
  std::chrono::sys_seconds point{};
  out.has_date = text.size() > 4 && text[4] == '-';
  if (out.has_date) {
    const auto date = in.Date();
    if (!date) return std::nullopt;
    point = *date;
  }
  out.has_time = !out.has_date || in.TakeAny("Tt ");
  if (out.has_time) {
    const auto time = in.TimeOfDay(out);
    if (!time) return std::nullopt;
    point += *time;
  }
  const auto offset = in.OffsetOf(out);
  if (!offset || !in.AtEnd()) return std::nullopt;
  out.point.seconds = (point - *offset).time_since_epoch().count();
  if (out.point.seconds < kYear1 || out.point.seconds > kYear9999) return std::nullopt;
  return out;
}

std::optional<DateTime> ParseDateTime(std::string_view text) {
  auto out = ParseIso(text);
  if (out && (!out->has_date || !out->has_time)) out.reset();
  return out;
}

}  // namespace fencepost
