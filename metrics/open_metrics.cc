#include "metrics/open_metrics.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/trace/trace_context.h"

namespace fencepost::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// What stands before the mark, trimmed; text is what stands behind it.
std::string_view TakeUntil(char mark, std::string_view& text) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return Trimmed(part);
}

bool IsWord(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

// One entry of an Accept header.
struct MediaRange {
  std::string_view type;
  std::string_view version;  // empty: any
  double quality = 1;
};

// nullopt: its quality is none.
std::optional<MediaRange> RangeOf(std::string_view text) {
  MediaRange range{.type = TakeUntil(';', text)};
  while (!text.empty()) {
    std::string_view value = TakeUntil(';', text);
    const std::string_view name = TakeUntil('=', value);
    value = Trimmed(value);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    if (IsWord(name, "version")) range.version = value;
    if (!IsWord(name, "q")) continue;
    const char* const end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, range.quality);
    const bool good = error == std::errc() && at == end;
    if (!good || !(range.quality >= 0 && range.quality <= 1)) return std::nullopt;
  }
  return range;
}

// How much a format is wanted: as the range says that fits it most closely.
class Preference {
 public:
  Preference(std::string_view type, std::string_view version) : type_(type), version_(version) {}

  // The n-th range of the header.
  void Read(const MediaRange& range, int n) {
    const std::string_view family = type_.substr(0, type_.find('/'));
    int closeness = 0;
    if (IsWord(range.type, "*/*")) closeness = 1;
    if (IsWord(range.type, fmt::format("{}/*", family))) closeness = 2;
    if (IsWord(range.type, type_) && range.version.empty()) closeness = kNamed;
    if (IsWord(range.type, type_) && range.version == version_) closeness = kNamed + 1;
    if (closeness <= closeness_) return;
    closeness_ = closeness;
    quality_ = range.quality;
    place_ = closeness >= kNamed ? n : kNoPlace;
  }
  [[nodiscard]] bool IsNamed() const { return closeness_ >= kNamed && quality_ > 0; }
  [[nodiscard]] bool IsAbove(const Preference& other) const {
    return quality_ != other.quality_ ? quality_ > other.quality_ : place_ < other.place_;
  }

 private:
  static constexpr int kNamed = 3, kNoPlace = 1 << 30;
  std::string_view type_, version_;
  int closeness_ = 0;
  double quality_ = 0;
  int place_ = kNoPlace;
};

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// As `le` has to be written: 1 is 1.0.
std::string BoundText(double bound) {
  std::string text = fmt::format("{}", bound);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string_view UnitOf(std::string_view family) {
  for (const std::string_view unit : {"seconds", "bytes"}) {
    if (family.ends_with(unit) && family.substr(0, family.size() - unit.size()).ends_with('_')) {
      return unit;
    }
  }
  return "";
}

// Writes the samples of one family.
class Samples {
 public:
  Samples(const Family& family, std::string& text) : family_(family), text_(text) {}

  void Number(const ClientMetric& series, double value) {
    Add("", LabelsOf(series), fmt::format("{}", value));
  }
  void Histogram(std::size_t place) {
    const ClientMetric& series = family_.numbers.metric[place];
    const ClientMetric::Histogram& histogram = series.histogram;
    for (std::size_t i = 0; i < histogram.bucket.size(); ++i) {
      const auto& [count, bound] = histogram.bucket[i];
      Bucket(series, BoundText(bound), count, {place, i});
    }
    Bucket(series, "+Inf", histogram.sample_count, {place, histogram.bucket.size()});
    Add("_count", LabelsOf(series), fmt::format("{}", histogram.sample_count));
    Add("_sum", LabelsOf(series), fmt::format("{}", histogram.sample_sum));
  }

 private:
  static std::string LabelsOf(const ClientMetric& series, std::string_view bound = "") {
    std::string text;
    const auto add = [&text](std::string_view name, std::string_view value) {
      text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, Escaped(value));
    };
    for (const auto& [name, value] : series.label) add(name, value);
    if (!bound.empty()) add("le", bound);
    return text.empty() ? "" : fmt::format("{{{}}}", text);
  }
  void Bucket(const ClientMetric& series, std::string_view bound, std::uint64_t count,
              std::pair<std::size_t, std::size_t> place) {
    std::string value = fmt::format("{}", count);
    if (const auto found = family_.exemplars.find(place); found != family_.exemplars.end()) {
      const auto& [trace, seen, unix_time] = found->second;
      // At most 128 characters of names and values are allowed: they are 63.
      value += fmt::format(R"( # {{trace_id="{}",span_id="{}"}} {} {:.3f})",
                           consumer::TraceIdText(trace), consumer::SpanIdText(trace.span), seen,
                           std::chrono::duration<double>(unix_time).count());
    }
    Add("_bucket", LabelsOf(series, bound), value);
  }
  void Add(std::string_view suffix, const std::string& labels, const std::string& value) {
    fmt::format_to(std::back_inserter(text_), "{}{}{} {}\n", family_.numbers.name, suffix, labels,
                   value);
  }

  const Family& family_;
  std::string& text_;
};

void Append(const Family& family, std::string& text) {
  const auto& [name, help, type, metric] = family.numbers;
  std::string_view shown = name;
  std::string_view kind = "gauge";
  if (type == MetricType::Histogram) kind = "histogram";
  if (type == MetricType::Counter) {
    kind = "counter";
    shown.remove_suffix(std::string_view("_total").size());
  }
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "# TYPE {} {}\n", shown, kind);
  if (const auto unit = UnitOf(shown); !unit.empty()) {
    fmt::format_to(out, "# UNIT {} {}\n", shown, unit);
  }
  fmt::format_to(out, "# HELP {} {}\n", shown, Escaped(help));
  Samples samples(family, text);
  for (std::size_t i = 0; i < metric.size(); ++i) {
    if (type == MetricType::Histogram) samples.Histogram(i);
    if (type == MetricType::Counter) samples.Number(metric[i], metric[i].counter.value);
    if (type == MetricType::Gauge) samples.Number(metric[i], metric[i].gauge.value);
  }
}

}  // namespace

bool WantsOpenMetrics(std::string_view accept) {
  Preference open_metrics("application/openmetrics-text", "1.0.0");
  Preference text("text/plain", "0.0.4");
  for (int n = 0; !accept.empty(); ++n) {
    const auto range = RangeOf(TakeUntil(',', accept));
    if (!range) continue;
    open_metrics.Read(*range, n);
    text.Read(*range, n);
  }
  return open_metrics.IsNamed() && open_metrics.IsAbove(text);
}

std::string OpenMetricsText(const std::vector<Family>& families) {
  std::string text;
  for (const Family& family : families) Append(family, text);
  return text + "# EOF\n";
}

}  // namespace fencepost::metrics
