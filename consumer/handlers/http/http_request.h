// One HTTP request at a time on one curl handle: a record out, its values or its failure back. No
// threads and no waiting here; http_runner.cc drives the handle. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

// What all requests of a handler have in common. Immutable.
struct HttpTarget {
  HttpHandlerOptions options;
  std::vector<std::string> headers;  // the user's, as lines for curl
  bool own_content_type = false;     // the user gave one
  bool json = false;                 // and it is JSON's
  bool https = false;
  std::string user_agent;

  // Error: the URL does not parse or is neither http nor https, the method or a header holds what
  // no request may hold, tls_ca cannot be read.
  static tl::expected<HttpTarget, Error> Make(const HttpHandlerOptions& options,
                                              const std::string& pipeline);
  // Of a record whose value is not what the user's Content-Type says.
  [[nodiscard]] std::optional<HandlerFailure> Refusal(const Record& record) const;
};

class HttpRequest {
 public:
  explicit HttpRequest(const HttpTarget* target);  // which outlives it
  HttpRequest(const HttpRequest&) = delete;
  HttpRequest& operator=(const HttpRequest&) = delete;

  // Sets the handle up for this call; CURLOPT_PRIVATE is this object.
  void Begin(HandlerCall call);
  // What became of it: `code` is how curl says that the transfer ended.
  HandlerResult Result(CURLcode code);
  // Forgets the record. The handle may be used again.
  void End();

  [[nodiscard]] CURL* handle() const { return easy_.get(); }
  [[nodiscard]] const HandlerCall& call() const { return call_; }

 private:
  // An attempt is one request: curl itself would send it again, up to five times, where a
  // connection that was used before ends without an answer.
  static int BeforeSending(void* self, char* there, char* here, int port_there, int port_here);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  void SetCommonOptions();  // once: they and the method stay from request to request
  bool SetBody();           // whether the request has a body that is the record's
  void SetHeaders(bool with_body);
  [[nodiscard]] std::string CurlsWords(CURLcode code) const;
  [[nodiscard]] std::string Encoding() const;
  [[nodiscard]] std::optional<Millis> RetryAfter() const;

  const HttpTarget* const target_;
  curl::Easy easy_;
  curl::List headers_;
  HandlerCall call_;
  std::string body_;
  bool sent_ = false;
  bool too_large_ = false;
  std::array<char, CURL_ERROR_SIZE> words_{};
};

}  // namespace fencepost::consumer
