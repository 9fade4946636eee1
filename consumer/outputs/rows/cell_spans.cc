// Cells of columns of lengths of time and of ranges of times, whose texts PostgreSQL reads: it
// would round or drop what an interval does not keep, and ignore offsets and times of day in
// bounds.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_types.h"

namespace fencepost::consumer {
namespace {

using Made = tl::expected<void, std::string>;
using Refusal = tl::unexpected<std::string>;

struct LengthUnit {
  std::string_view words;  // between blanks
  IntervalField field;
  int digits;  // of a fraction, that PostgreSQL neither rounds nor spreads otherwise
  int shift;   // how many digits of a second a whole one has
};
constexpr std::array<LengthUnit, 8> kLengthUnits{{
    {" y yr yrs year years ", IntervalField::kYears, 0, 0},
    {" mon mons month months ", IntervalField::kMonths, 0, 0},
    {" w week weeks d day days ", IntervalField::kDays, 3, 0},
    {" h hr hrs hour hours ", IntervalField::kHours, 3, 0},
    {" m min mins minute minutes ", IntervalField::kMinutes, 3, 0},
    {" s sec secs second seconds ", IntervalField::kSeconds, 6, 0},
    {" ms msec msecs millisecond milliseconds ", IntervalField::kSeconds, 3, 3},
    {" us usec usecs microsecond microseconds ", IntervalField::kSeconds, 0, 6},
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

  IntervalField finest = IntervalField::kYears;  // that is not zero
  int digits = 0;                                // behind the second, without zeros at the end
  bool odd = false;                              // it is written in another way

 private:
  struct Number {
    bool zero = true;
    int digits = 0;
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
  std::optional<Number> Digits() {
    Take("+-");
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789."), rest_.size());
    const std::string_view number = rest_.substr(0, end);
    rest_.remove_prefix(end);
    const std::size_t point = number.find('.');
    if (number.empty() || number == "." || point != number.rfind('.')) return std::nullopt;
    const std::size_t last = number.find_last_of("123456789");
    if (last == std::string_view::npos) return Number{};
    const bool whole = point == std::string_view::npos || last < point;
    return Number{.zero = false, .digits = whole ? 0 : static_cast<int>(last - point)};
  }
  void Has(IntervalField field, int behind = 0) {
    finest = std::max(finest, field);
    digits = std::max(digits, behind);
  }

  Made Part() {
    const auto number = Digits();
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
    if (number->zero) return {};
    if (unit->field == IntervalField::kSeconds) {
      Has(unit->field, number->digits + unit->shift);
      return {};
    }
    if (number->digits > unit->digits) {
      return Refusal(fmt::format("has a fraction of {}, which PostgreSQL would round",
                                 kFieldWords[static_cast<std::size_t>(unit->field)]));
    }
    Has(number->digits > 0 ? IntervalField::kSeconds : unit->field);
    return {};
  }
  // Of hours, which are read. (Two numbers alone may also be minutes and seconds.)
  Made TimeOfDay(const Number& hours) {
    if (!hours.zero) Has(IntervalField::kHours);
    for (const auto field : {IntervalField::kMinutes, IntervalField::kSeconds}) {
      const auto number = Take(":") ? Digits() : std::nullopt;
      if (!number) return Odd();
      if (!number->zero) Has(field, number->digits);
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
};

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
  if (length.digits > most) {
    return Refusal(fmt::format("has {} digits behind the second, and the column keeps {}",
                               length.digits, most));
  }
  const bool all = to.finest == IntervalField::kSeconds && most == 6;
  const std::size_t point = length.odd ? text.rfind('.') : std::string_view::npos;
  const bool fine = point != std::string_view::npos && text.size() - point > 7;
  if (length.odd && (!all || fine)) {
    return Refusal(
        "is written in a way of which nothing says what the column keeps: write it as "
        "P1Y2M3DT4H5M6S");
  }
  if (length.finest <= to.finest) return {};
  const auto word = [](IntervalField field) {
    return kFieldWords[static_cast<std::size_t>(field)];
  };
  return Refusal(
      fmt::format("has {}, and the column keeps {}", word(length.finest), word(to.finest)));
}

Made MakeCellRange(const CellType& to, std::string& text, std::size_t at) {
  constexpr std::array<std::string_view, 3> kWords{"empty", "infinity", "-infinity"};
  const CellType type{.kind = to.bounds, .digits = 6, .zoned = to.zoned, .no_nul = to.no_nul};
  const std::string from = text.substr(at);
  if (from.find("\"\"") != std::string::npos) return Refusal("has a bound that is empty");
  text.resize(at);
  for (std::size_t begin = 0, end = 0; begin < from.size(); begin = end) {
    end = std::min(from.find_first_of("[](){},\"", begin), from.size());
    if (end == begin) {
      if (from[end++] != '"') text.push_back(from[begin]);
      continue;
    }
    std::string bound(Trimmed(std::string_view(from).substr(begin, end - begin)));
    if (bound.empty()) continue;
    if (std::ranges::find(kWords, bound) != kWords.end()) {
      text += bound;
      continue;
    }
    if (auto made = MakeCellTime(type, Conversion::kNone, bound, 0); !made) {
      return Refusal("has a bound that " + made.error());
    }
    text.append(1, '"').append(bound).append(1, '"');
  }
  return {};
}

}  // namespace fencepost::consumer
