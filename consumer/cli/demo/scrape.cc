#include "consumer/cli/demo/scrape.h"

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "consumer/cli/shared/http_get.h"

namespace fencepost::cli {
namespace {

struct Series {
  std::string_view prefix;  // name, and the labels that pick it, as a part of the line
  std::string_view label;
  std::int64_t Totals::*field;
};

constexpr Series kSeries[] = {
    {"fencepost_records_processed_total", "result=\"done\"", &Totals::processed},
    {"fencepost_records_processed_total", "result=\"skipped\"", &Totals::skipped},
    {"fencepost_records_in_flight", "", &Totals::in_flight},
    {"fencepost_locks_held", "", &Totals::held},
    {"fencepost_consumer_lag_records", "", &Totals::lag},
    {"fencepost_commit_gap_records", "", &Totals::commit_gap},
    {"fencepost_partitions_assigned", "", &Totals::partitions},
    {"fencepost_lock_acquisitions_total", "result=\"contended\"", &Totals::contended},
    {"fencepost_lock_expirations_total", "", &Totals::expired},
    {"fencepost_fencing_rejections_total", "", &Totals::fenced},
    {"fencepost_lock_takeovers_total", "", &Totals::takeovers},
    {"fencepost_invariant_violations_total", "", &Totals::violations},
};

void AddLine(const std::string& line, Totals& totals) {
  for (const Series& series : kSeries) {
    const std::size_t end = series.prefix.size();
    const bool named = line.compare(0, end, series.prefix) == 0 && line.size() > end &&
                       (line[end] == '{' || line[end] == ' ');
    if (!named || line.find(series.label) == std::string::npos) continue;
    totals.*series.field += std::llround(std::strtod(line.c_str() + line.rfind(' '), nullptr));
  }
}

}  // namespace

Totals& Totals::operator+=(const Totals& other) {
  for (const auto field :
       {&Totals::processed, &Totals::skipped, &Totals::in_flight, &Totals::held, &Totals::lag,
        &Totals::commit_gap, &Totals::partitions, &Totals::contended, &Totals::expired,
        &Totals::fenced, &Totals::takeovers, &Totals::violations}) {
    this->*field += other.*field;
  }
  return *this;
}

std::optional<Totals> Scrape(const std::string& url) {
  const auto reply = HttpGet(url + "/metrics", std::chrono::milliseconds(300));
  if (!reply) return std::nullopt;
  Totals totals;
  std::istringstream lines(reply->body);
  for (std::string line; std::getline(lines, line);) AddLine(line, totals);
  return totals;
}

}  // namespace fencepost::cli
