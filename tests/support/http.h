// What tests ask of a worker's HTTP server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fencepost::testing {

struct HttpResponse {
  int status = 0;  // 0: no answer (refused, or silent for 5 s)
  std::string body;
};

HttpResponse HttpGet(const std::string& host, int port, const std::string& path);
HttpResponse HttpPost(const std::string& host, int port, const std::string& path,
                      const std::string& body = "");

// A page in Prometheus's text format.
class MetricsPage {
 public:
  using Labels = std::map<std::string, std::string>;
  struct Series {
    std::string name;
    Labels labels;
    double value = 0;
  };

  explicit MetricsPage(std::string_view text);

  // The sum over the series of that name that have all these labels; nullopt when there is none.
  [[nodiscard]] std::optional<double> Value(std::string_view name, const Labels& labels = {}) const;
  [[nodiscard]] const std::vector<Series>& series() const { return series_; }
  // Lines that are neither a comment nor a series.
  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

 private:
  std::vector<Series> series_;
  std::vector<std::string> broken_;
};

// GET /metrics of 127.0.0.1:port; nullopt when it does not answer 200.
std::optional<MetricsPage> Scrape(int port);

}  // namespace fencepost::testing
