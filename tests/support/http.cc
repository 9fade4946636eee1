#include "tests/support/http.h"

#include <curl/curl.h>

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

std::size_t Append(char* data, std::size_t size, std::size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

// NAME{a="b",c="d"} VALUE [TIMESTAMP]; quotes, backslashes and newlines are escaped in values.
std::optional<MetricsPage::Series> ParseSeries(std::string_view line) {
  MetricsPage::Series series;
  std::size_t at = line.find_first_of("{ ");
  if (at == 0 || at == std::string_view::npos) return std::nullopt;
  series.name = line.substr(0, at);
  if (line[at] == '{') {
    ++at;
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string_view::npos) return std::nullopt;
      const std::string label(line.substr(at, equals - at));
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
          ++at;
          value += line[at] == 'n' ? '\n' : line[at];
        } else {
          value += line[at];
        }
      }
      series.labels[label] = value;
      ++at;
      if (at < line.size() && line[at] == ',') ++at;
    }
    if (at >= line.size()) return std::nullopt;
    ++at;
  }
  const std::string number(line.substr(std::min(at, line.size())));
  char* end = nullptr;
  series.value = std::strtod(number.c_str(), &end);
  if (end == number.c_str()) return std::nullopt;
  return series;
}

}  // namespace

namespace {

// `body`: of a POST; nullptr: a GET.
HttpResponse Ask(const std::string& host, int port, const std::string& path,
                 const std::string* body) {
  HttpResponse response;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  const std::string url = fmt::format("http://{}:{}{}", host, port, path);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 5L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &response.body);
  if (body != nullptr) curl_easy_setopt(curl.get(), CURLOPT_COPYPOSTFIELDS, body->c_str());
  if (curl_easy_perform(curl.get()) != CURLE_OK) return {};
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  return response;
}

}  // namespace

HttpResponse HttpGet(const std::string& host, int port, const std::string& path) {
  return Ask(host, port, path, nullptr);
}

HttpResponse HttpPost(const std::string& host, int port, const std::string& path,
                      const std::string& body) {
  return Ask(host, port, path, &body);
}

MetricsPage::MetricsPage(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty() || line[0] == '#') continue;
    if (auto series = ParseSeries(line)) {
      series_.push_back(std::move(*series));
    } else {
      broken_.emplace_back(line);
    }
  }
}

std::optional<double> MetricsPage::Value(std::string_view name, const Labels& labels) const {
  std::optional<double> sum;
  for (const Series& series : series_) {
    if (series.name != name) continue;
    bool matches = true;
    for (const auto& [label, value] : labels) {
      const auto found = series.labels.find(label);
      matches = matches && found != series.labels.end() && found->second == value;
    }
    if (matches) sum = sum.value_or(0) + series.value;
  }
  return sum;
}

std::optional<MetricsPage> Scrape(int port) {
  const HttpResponse response = HttpGet("127.0.0.1", port, "/metrics");
  if (response.status != 200) return std::nullopt;
  return MetricsPage(response.body);
}

}  // namespace fencepost::testing
