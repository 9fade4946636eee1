// Cells of columns of lengths of time and of ranges of times, whose texts PostgreSQL reads: it
// would round or drop what an interval does not keep, and ignore offsets and times of day in
// bounds.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_types.h"

namespace fencepost::consumer {
namespace {

using Made = tl::expected<void, std::string>;
using Refusal = tl::unexpected<std::string>;

constexpr std::int64_t kSecond = 1'000'000;  // in microseconds
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kHoursOfDay = 24;
constexpr int kMostDigits = 6;

struct LengthUnit {
  std::string_view words;  // between blanks
  IntervalField field;
  std::int64_t size;  // in months, days or microseconds
  int digits;         // of a fraction, that PostgreSQL neither rounds nor spreads otherwise
};
constexpr std::array<LengthUnit, 9> kLengthUnits{{
    {" y yr yrs year years ", IntervalField::kYears, 12, 2},
    {" mon mons month months ", IntervalField::kMonths, 1, 0},
    {" w week weeks ", IntervalField::kDays, 7, 3},
    {" d day days ", IntervalField::kDays, 1, 3},
    {" h hr hrs hour hours ", IntervalField::kHours, kHour, 3},
    {" m min mins minute minutes ", IntervalField::kMinutes, kMinute, 3},
    {" s sec secs second seconds ", IntervalField::kSeconds, kSecond, 6},
    {" ms msec msecs millisecond milliseconds ", IntervalField::kSeconds, 1000, 3},
    {" us usec usecs microsecond microseconds ", IntervalField::kSeconds, 1, 0},
}};
constexpr std::array<std::string_view, 6> kFieldWords{"years", "months",  "days",
                                                      "hours", "minutes", "seconds"};

const LengthUnit* UnitOf(std::string_view word) {
  std::string between = " ";
  for (const char c : word) between.push_back(static_cast<char>(std::tolower(c)));
  between.push_back(' ');
  const auto* const found = std::ranges::find_if(kLengthUnits, [&](const LengthUnit& unit) {
    return unit.words.find(between) != std::string_view::npos;
  });
  return found == kLengthUnits.end() ? nullptr : found;
}

// Goes through P1Y2M3DT4H5M6.5S, or 1 year 2 mons -3 days 04:05:06.5.
class Length {
 public:
  explicit Length(std::string_view text) : rest_(text), iso_(text.starts_with('P')) {
    if (iso_) rest_.remove_prefix(1);
  }

  Made Read() {
    while (!rest_.empty()) {
      if (Take(" @") || Word("ago")) continue;
      if (iso_ && Take("T")) {
        in_day_ = true;
        continue;
      }
      if (auto part = Part(); !part) return part;
      if (odd) break;
    }
    return {};
  }

  // The smallest that is not zero.
  [[nodiscard]] IntervalField Finest() const {
    if (micros_ % kMinute != 0) return IntervalField::kSeconds;
    if (micros_ % kHour != 0) return IntervalField::kMinutes;
    if (micros_ != 0) return IntervalField::kHours;
    if (days_ != 0) return IntervalField::kDays;
    return months_ % 12 != 0 ? IntervalField::kMonths : IntervalField::kYears;
  }
  // Behind the second, without zeros at the end.
  [[nodiscard]] int Digits() const {
    int digits = 0;
    for (std::int64_t rest = micros_ % kSecond; rest != 0; ++digits) rest = rest * 10 % kSecond;
    return digits;
  }

  bool odd = false;  // it is written in another way

 private:
  struct Number {
    bool negative = false;
    std::int64_t whole = 0;
    std::int64_t fraction = 0;  // in parts of `power`
    std::int64_t power = 1;
    int digits = 0;  // of the fraction, without zeros at the end
  };

  bool Take(std::string_view any) {
    if (rest_.empty() || any.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<Number> ReadNumber() {
    Number number{.negative = rest_.starts_with('-')};
    Take("+-");
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789."), rest_.size());
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end);
    const std::size_t point = std::min(text.find('.'), text.size());
    if (text.empty() || text == "." || text.find('.', point + 1) != std::string_view::npos) {
      return std::nullopt;
    }
    const auto whole = std::from_chars(text.data(), text.data() + point, number.whole);
    if (point > 0 && whole.ec != std::errc()) return std::nullopt;
    const std::size_t last = text.find_last_not_of("0.");
    if (last == std::string_view::npos || last < point) return number;
    number.digits = static_cast<int>(last - point);
    for (std::size_t i = point + 1; i <= last && number.digits <= kMostDigits; ++i) {
      number.fraction = number.fraction * 10 + (text[i] - '0');
      number.power *= 10;
    }
    return number;
  }
  // Odd where 64 bits do not hold it.
  void Add(std::int64_t& sum, const Number& number, std::int64_t count, std::int64_t size) {
    std::int64_t all = 0;
    if (__builtin_mul_overflow(number.negative ? -count : count, size, &all) ||
        __builtin_add_overflow(sum, all, &sum)) {
      odd = true;
    }
  }
  Made Count(const LengthUnit& unit, const Number& number) {
    const bool days = unit.field == IntervalField::kDays;
    std::int64_t& sum = days ? days_ : unit.field < IntervalField::kDays ? months_ : micros_;
    const bool fits = number.digits <= unit.digits;
    const std::int64_t parts = fits ? number.fraction * unit.size : 0;
    const std::int64_t rest = parts % number.power;
    if (!fits || (rest != 0 && !days)) {
      return Refusal(fmt::format("has a fraction of {}, which PostgreSQL would round",
                                 kFieldWords[static_cast<std::size_t>(unit.field)]));
    }
    Add(sum, number, number.whole, unit.size);
    Add(sum, number, parts / number.power, 1);
    Add(micros_, number, rest * kHoursOfDay * (kHour / number.power), 1);
    return {};
  }

  Made Part() {
    const auto number = ReadNumber();
    if (!number) return Odd();
    if (rest_.starts_with(':')) return TimeOfDay(*number);
    Take(" ");
    std::size_t end = 0;
    while (end < rest_.size() && std::isalpha(static_cast<unsigned char>(rest_[end])) != 0) ++end;
    std::string_view word = rest_.substr(0, iso_ ? std::min<std::size_t>(end, 1) : end);
    if (iso_ && !in_day_ && word == "M") word = "mon";
    const LengthUnit* const unit = UnitOf(word);
    if (unit == nullptr) return Odd();
    rest_.remove_prefix(iso_ ? 1 : end);
    return Count(*unit, *number);
  }
  // Of hours, which are read. (Two numbers alone may also be minutes and seconds.)
  Made TimeOfDay(const Number& hours) {
    Number number = hours;
    for (const char* const unit : {"h", "m", "s"}) {
      if (*unit != 'h') {
        if (number.digits > 0 || !Take(":") || rest_.find_first_of("+-") == 0) return Odd();
        const auto next = ReadNumber();
        if (!next) return Odd();
        number = *next;
        number.negative = hours.negative;
      }
      if (auto counted = Count(*UnitOf(unit), number); !counted) return counted;
    }
    return {};
  }
  Made Odd() {
    odd = true;
    return {};
  }

  std::string_view rest_;
  const bool iso_;
  bool in_day_ = false;
  // Apart, as PostgreSQL keeps them.
  std::int64_t months_ = 0, days_ = 0, micros_ = 0;
};

constexpr std::string_view kBehindBound = ",)]";

// As PostgreSQL reads it, up to what ends it; two quotes in quotes are one of the bound.
std::string ReadBound(std::string_view range, std::size_t& next) {
  std::string bound;
  bool quoted = false;
  for (; next < range.size(); ++next) {
    const char c = range[next];
    if (!quoted && kBehindBound.find(c) != std::string_view::npos) break;
    if (c != '"') {
      bound.push_back(c);
    } else if (quoted && range.substr(next + 1).starts_with('"')) {
      bound.push_back(range[++next]);
    } else {
      quoted = !quoted;
    }
  }
  return bound;
}

}  // namespace

Made CheckInterval(const CellType& to, std::string_view text) {
  std::string_view number = Trimmed(text);
  if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
  if (!number.empty() && number.find_first_not_of("0123456789.") == std::string_view::npos) {
    return Refusal("is a number, and nothing says what it counts: convert says the unit");
  }
  Length length(text);
  if (auto read = length.Read(); !read) return read;
  const int most = to.digits.value_or(6);
  if (!length.odd && length.Digits() > most) {
    return Refusal(fmt::format("has {} digits behind the second, and the column keeps {}",
                               length.Digits(), most));
  }
  const bool all = to.finest == IntervalField::kSeconds && most == 6;
  const std::size_t point = length.odd ? text.rfind('.') : std::string_view::npos;
  const bool fine = point != std::string_view::npos && text.size() - point > 7;
  if (length.odd && (!all || fine)) {
    return Refusal(
        "is written in a way of which nothing says what the column keeps: write it as "
        "P1Y2M3DT4H5M6S");
  }
  if (length.odd || length.Finest() <= to.finest) return {};
  const auto word = [](IntervalField field) {
    return kFieldWords[static_cast<std::size_t>(field)];
  };
  return Refusal(
      fmt::format("has {}, and the column keeps {}", word(length.Finest()), word(to.finest)));
}

Made MakeCellRange(const CellType& to, std::string& text, std::size_t at) {
  const CellType type{.kind = to.bounds, .digits = 6, .zoned = to.zoned, .no_nul = to.no_nul};
  const std::string from = text.substr(at);
  text.resize(at);
  bool inside = false;  // of a range; around it are blanks, commas, braces and the word empty
  for (std::size_t next = 0; next < from.size();) {
    const char c = from[next];
    if (!inside || kBehindBound.find(c) != std::string_view::npos) {
      inside = c == '[' || c == '(' || (inside && c == ',');
      text.push_back(c);
      ++next;
      continue;
    }
    const std::string raw = ReadBound(from, next);
    std::string bound(Trimmed(raw));
    if (bound.empty()) return Refusal("has a bound that is empty");
    std::string word = bound;
    std::ranges::transform(word, word.begin(), [](unsigned char letter) {
      return static_cast<char>(std::tolower(letter));
    });
    const bool moment = word != "infinity" && word != "-infinity";
    const auto made = moment ? MakeCellTime(type, Conversion::kNone, bound, 0) : Made();
    if (!made) return Refusal("has a bound that " + made.error());
    text.append(1, '"').append(bound).append(1, '"');
  }
  return {};
}

}  // namespace fencepost::consumer
