#include "consumer/cli/demo/scrape.h"

#include <curl/curl.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>

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

std::size_t Collect(char* data, std::size_t size, std::size_t count, void* text) {
  static_cast<std::string*>(text)->append(data, size * count);
  return size * count;
}

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
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  std::string text;
  curl_easy_setopt(curl.get(), CURLOPT_URL, (url + "/metrics").c_str());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 300L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &text);
  if (curl_easy_perform(curl.get()) != CURLE_OK) return std::nullopt;
  Totals totals;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) AddLine(line, totals);
  return totals;
}

}  // namespace fencepost::cli
