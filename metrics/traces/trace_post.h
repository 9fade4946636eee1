// Sends requests of OTLP to a collector over HTTP, one at a time.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "consumer/handlers/http/curl_holders.h"
#include "metrics/traces/export_options.h"

namespace fencepost::metrics {

// http://otel:4318 of http://user:password@otel:4318/v1/traces?key=…: what may be shown of it.
// Empty: it is no URL of http or https.
std::string ShownEndpoint(const std::string& endpoint);

class TracePost {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  struct Answer {
    int status = 0;      // 0: there was none
    std::string type{};  // Content-Type; empty: it has none
    std::string body{};  // its first 64 KiB
    std::optional<Millis> retry_after{};
    int code = 0;           // CURLcode; another than 0: there is no answer, or not all of it
    std::string problem{};  // why, without what may be secret
  };

  // The options outlive it.
  TracePost(const ExportOptions& options, const std::string& user_agent);
  TracePost(const TracePost&) = delete;
  TracePost& operator=(const TracePost&) = delete;

  // Waits for the answer, for traces.timeout and no longer than `until`, which is asked again after
  // each Wake. Follows no redirects. One thread.
  Answer Send(const std::string& body, const std::function<Moment()>& until);
  void Wake();  // any thread

 private:
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  [[nodiscard]] Answer Ended(CURLcode code, std::string_view problem) const;
  Answer Perform(const std::function<Moment()>& until);

  const ExportOptions& options_;
  consumer::curl::Lines headers_;
  consumer::curl::Multi multi_;
  consumer::curl::Easy easy_;
  std::string answer_;
  std::array<char, CURL_ERROR_SIZE> words_{};
};

}  // namespace fencepost::metrics
