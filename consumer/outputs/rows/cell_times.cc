// Cells of columns of times. A time with an offset is the same moment in each of them; one without
// is UTC.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/cell_values.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {
namespace {

using Done = tl::expected<void, std::string>;
using Problem = tl::unexpected<std::string>;

constexpr std::int64_t kDay = 86'400;
constexpr int kNanosDigits = 9;  // of a PointInTime

// A length of time, and a time of day.
struct Span {
  bool negative = false;
  std::int64_t seconds = 0;
  std::uint32_t nanos = 0;
  int digits = 0;  // that it was written with
};

std::int64_t InDay(std::int64_t seconds) { return ((seconds % kDay) + kDay) % kDay; }

// How many digits behind the second it takes to write them.
int DigitsOf(std::uint32_t nanos) {
  int digits = kNanosDigits;
  for (; digits > 0 && nanos % 10 == 0; nanos /= 10) --digits;
  return digits;
}

Done Fits(const CellType& to, std::uint32_t nanos) {
  if (!to.digits || DigitsOf(nanos) <= *to.digits) return {};
  return Problem(fmt::format("has {} digits behind the second, and the column keeps {}",
                             DigitsOf(nanos), *to.digits));
}

void AppendSpan(const Span& span, int digits, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}{:02}:{:02}:{:02}", span.negative ? "-" : "",
                 span.seconds / 3600, span.seconds / 60 % 60, span.seconds % 60);
  if (digits == 0) return;
  out.append(".").append(fmt::format("{:09}", span.nanos), 0, static_cast<std::size_t>(digits));
}

// -123:00:00.5; nullopt: a time of day, or none.
std::optional<Span> ParseSpan(std::string_view text) {
  Span span{.negative = text.starts_with('-')};
  if (span.negative) text.remove_prefix(1);
  const std::size_t hours = text.find(':');
  if (hours < 2 || hours > 3) return std::nullopt;
  for (const char c : text.substr(0, hours)) {
    if (c < '0' || c > '9') return std::nullopt;
    span.seconds = span.seconds * 10 + (c - '0');
  }
  const auto rest = ParseIso("00" + std::string(text.substr(hours)));
  if (!rest || rest->has_offset) return std::nullopt;
  span.seconds = span.seconds * 3600 + rest->point.seconds;
  span.nanos = rest->point.nanos;
  span.digits = rest->digits;
  return span;
}

Span SpanOf(const PointInTime& point) {
  Span span{.negative = point.seconds < 0, .seconds = point.seconds, .nanos = point.nanos};
  if (!span.negative) return span;
  span.seconds = -point.seconds - (point.nanos > 0 ? 1 : 0);
  span.nanos = point.nanos > 0 ? 1'000'000'000 - point.nanos : 0;
  return span;
}

std::string_view WordsOf(CellKind kind) {
  if (kind == CellKind::kDate) return "is not a date as 2026-11-22";
  if (kind == CellKind::kTime) return "is not a time of day as 13:05:00.250";
  return "is not a time as 2026-11-22T13:05:00.250Z";
}

// One cell on its way. The methods replace it.
class Times {
 public:
  Times(const CellType& to, std::string& text, std::size_t at) : to_(to), text_(text), at_(at) {}

  Done OfNumber(Conversion unit) {
    const auto point = PointInTimeOf(cell(), unit);
    if (!point) return Problem(point.error());
    if (auto fine = Fits(to_, point->nanos); !fine) return fine;
    if (to_.kind == CellKind::kInterval) return OfInterval(*point);
    if (to_.kind == CellKind::kTime) return OfSpan(*point, unit);
    if (to_.kind == CellKind::kDate) return OfDate(*point);
    const int finest = unit == Conversion::kNanos ? kNanosDigits : 6;
    if (DigitsOf(point->nanos) > finest) {
      return Problem(fmt::format("has more than {} digits behind the second", finest));
    }
    text_.resize(at_);
    if (unit == Conversion::kDays && to_.kind != CellKind::kDateTime) {
      AppendDate(*point, text_);
    } else if (to_.kind != CellKind::kDateTime || to_.as_text) {
      AppendDateTime(*point, 'T', finest, text_);
      text_ += 'Z';
    } else {
      OfMoment(*point);
    }
    return {};
  }

  Done OfText() {
    if (to_.kind == CellKind::kInterval) return CheckInterval(to_, cell());
    const auto iso = ParseIso(cell());
    const bool day = to_.kind == CellKind::kTime;
    if (const auto span = to_.spans ? ParseSpan(cell()) : std::nullopt) return OfWritten(*span);
    if (day && IsEndOfDay()) {
      if (to_.as_text) return {};
      return OfWritten({.seconds = kDay});
    }
    if (iso && day && iso->has_date) return Problem("has a date, and the column is a time of day");
    if (!iso || (!day && !iso->has_date)) {
      return Problem(
          std::string(WordsOf(to_.kind))
              .append(IsJsonNumber(cell()) ? " (of a number, convert says the unit)" : ""));
    }
    if (auto fine = Fits(to_, iso->point.nanos); !fine) return fine;
    if (to_.as_text) return OfKept(*iso);
    if (to_.kind == CellKind::kDate) return OfDate(iso->point);
    if (!day) {
      text_.resize(at_);
      OfMoment(iso->point);
    } else if (to_.zoned) {
      if (!iso->has_offset) text_ += "+00";
    } else {
      text_.resize(at_);
      AppendSpan({.seconds = InDay(iso->point.seconds), .nanos = iso->point.nanos}, Digits(),
                 text_);
    }
    return {};
  }

 private:
  [[nodiscard]] std::string_view cell() const { return std::string_view(text_).substr(at_); }
  [[nodiscard]] int Digits() const { return to_.digits.value_or(6); }

  // 24:00:00, which ParseIso does not take; with an offset only that of UTC.
  [[nodiscard]] bool IsEndOfDay() const {
    if (!cell().starts_with("24:")) return false;
    const auto rest = ParseIso("00" + std::string(cell().substr(2)));
    return rest && rest->point.seconds == 0 && rest->point.nanos == 0;
  }
  void OfMoment(const PointInTime& point) {
    AppendDateTime(point, ' ', Digits(), text_);
    if (to_.zoned) text_ += 'Z';
  }
  Done OfDate(const PointInTime& point) {
    if (InDay(point.seconds) != 0 || point.nanos != 0) {
      return Problem("has a time of day (in UTC), and the column is a date");
    }
    if (to_.as_text && ParseIso(cell())) return {};
    text_.resize(at_);
    AppendDate(point, text_);
    return {};
  }
  Done OfInterval(const PointInTime& point) {
    text_.resize(at_);
    AppendSpan(SpanOf(point), Digits(), text_);
    return CheckInterval(to_, cell());
  }
  // `point`: since midnight.
  Done OfSpan(const PointInTime& point, Conversion unit) {
    const bool in_day = point.seconds >= 0 && point.seconds < kDay;
    if (!to_.spans && !in_day && (point.seconds != kDay || point.nanos != 0)) {
      return Problem(fmt::format("is not within a day in {}: is that its unit?", WordOf(unit)));
    }
    return OfWritten(SpanOf(point));
  }
  Done OfWritten(const Span& span) {
    constexpr std::int64_t kMostSeconds = 839 * 3600;
    if (span.seconds >= kMostSeconds) return Problem("is out of the type's range");
    if (auto fine = Fits(to_, span.nanos); !fine) return fine;
    text_.resize(at_);
    AppendSpan(span, Digits(), text_);
    if (to_.zoned) text_ += "+00";
    return {};
  }
  // In a column of text.
  Done OfKept(const DateTime& iso) {
    if (to_.kind == CellKind::kDate) return OfDate(iso.point);
    const char last = text_.back();
    if (!iso.has_offset || last == 'Z' || last == 'z') return {};
    text_.resize(at_);
    if (iso.has_date) {
      AppendDateTime(iso.point, 'T', iso.digits, text_);
    } else {
      AppendSpan({.seconds = InDay(iso.point.seconds), .nanos = iso.point.nanos}, iso.digits,
                 text_);
    }
    text_ += 'Z';
    return {};
  }

  const CellType& to_;
  std::string& text_;
  const std::size_t at_;
};

}  // namespace

Done MakeCellTime(const CellType& to, Conversion unit, std::string& text, std::size_t at) {
  Times times(to, text, at);
  return unit == Conversion::kNone ? times.OfText() : times.OfNumber(unit);
}

}  // namespace fencepost::consumer
