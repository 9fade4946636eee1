// One HTTP request at a time on one curl handle: a record or batch out, the answer or its failure
// back. No threads and no waiting here; http_runner.cc drives the handle. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/http/http_template.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

// What a request carries of its record.
struct RequestParts {
  std::string url;                   // empty: the handler's, which is the same for all
  std::vector<std::string> headers;  // lines for curl
  std::optional<bool> json{};        // the user's Content-Type is JSON's; nullopt: there is none
  std::optional<std::string> body{};
  std::string secret{};  // of auth; SecretOf, read once a request
};

// The token or the password that a request carries. Error: why there is none, in one line.
tl::expected<std::string, std::string> SecretOf(const HttpAuthOptions& auth);

// What all requests of a handler have in common. Immutable.
struct HttpTarget {
  HttpHandlerOptions options;
  HttpUrl url;
  std::vector<std::string> headers;  // the user's that are the same for all, as lines for curl
  std::vector<HttpHeader> templates;
  std::optional<bool> json{};  // as RequestParts'
  bool own_trace = false;      // the user has a traceparent
  bool https = false;
  std::string user_agent;

  // Error: the URL does not parse or is neither http nor https, the method or a header holds what
  // no request may hold, a template is none, a file of tls cannot be used.
  static tl::expected<HttpTarget, Error> Make(const HttpHandlerOptions& options,
                                              const std::string& pipeline);
  [[nodiscard]] bool batches() const { return options.batch.max_records > 1; }
  // Error: a bad record. It lacks a part of a template, or its body (http_rules.h) is not what its
  // Content-Type says.
  tl::expected<RequestParts, HandlerFailure> PartsOf(const HandlerCall& call,
                                                     std::optional<std::string> body,
                                                     Evaluator& evaluator) const;
  // What a request for the record has outside its body, as a text; empty: it cannot be made, which
  // PartsOf says. A batch has records of which it is the same.
  [[nodiscard]] std::string SharedOf(const HandlerCall& call, Evaluator& evaluator) const;

 private:
  std::optional<Error> AddHeader(const std::string& name, const std::string& text);
};

class HttpRequest {
 public:
  explicit HttpRequest(const HttpTarget* target);  // which outlives it
  HttpRequest(const HttpRequest&) = delete;
  HttpRequest& operator=(const HttpRequest&) = delete;

  // Sets the handle up for this call, or the first of a batch, and its parts; CURLOPT_PRIVATE is
  // this object. After `valid_until` it does not go out.
  void Begin(const HandlerCall& call, RequestParts parts, Instant valid_until);
  // The token that the service asks for; before each time it is sent.
  void Authorize(const std::string& token);
  // The service answered 401.
  [[nodiscard]] bool IsUnauthorized(CURLcode code) const;
  // It is sent once more: what was answered is forgotten.
  void Reset();
  // What became of it: `code` is how curl says that the transfer ended.
  AnswerBody Result(CURLcode code);
  // Forgets the record. The handle may be used again.
  void End();

  [[nodiscard]] CURL* handle() const { return easy_.get(); }

 private:
  // An attempt is one request. Where a connection that was used before turns out to have ended,
  // curl asks for another one, up to five times: right if nothing of the request went out.
  static int BeforeSending(void* self, char* there, char* here, int port_there, int port_here);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  void SetCommonOptions();             // once: they and the method stay from request to request
  [[nodiscard]] bool WentOut() const;  // any of it
  void SetBody();
  void SetHeaders(const HandlerCall& call, const RequestParts& parts);
  void AddCallHeaders(const HandlerCall& call);
  [[nodiscard]] const char* ContentType() const;
  [[nodiscard]] std::string CurlsWords(CURLcode code) const;
  [[nodiscard]] std::string Encoding() const;
  [[nodiscard]] std::optional<Millis> RetryAfter() const;

  const HttpTarget* const target_;
  curl::Easy easy_;
  curl::Lines headers_;
  std::optional<std::string> payload_;
  std::string body_;    // of the answer
  bool begun_ = false;  // a connection is there, and it was about to go out
  Instant valid_until_ = Instant::max();
  bool too_late_ = false;  // and it was about to go out
  bool too_large_ = false;
  std::array<char, CURL_ERROR_SIZE> words_{};
};

}  // namespace fencepost::consumer
