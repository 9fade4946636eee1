// What an HTTP answer means: a body to go on with, or a failure. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "consumer/handlers/handler.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct HttpAnswer {
  int status = 0;
  std::string encoding;  // Content-Encoding; empty: none
  std::string body;
  std::optional<Millis> retry_after;
};

// `result: keep` needs none, but for the verdicts of a batch.
inline bool ReadsAnswer(const HttpHandlerOptions& options) {
  return options.result != HttpResult::kKeep || options.batch.max_records > 1;
}

// nullopt: there is none, or it is not read.
using AnswerBody = tl::expected<std::optional<std::string>, HandlerFailure>;

// A status in `success`: the body (of 204 without one: none), decoded where it is gzip or deflate;
// in any other encoding it is a failure of class "connection". Any other status is a failure of its
// own class; it may be tried again if `retry_on` names it.
AnswerBody BodyOf(const HttpHandlerOptions& options, HttpAnswer answer);

// What a Retry-After header says: how long to wait from `now` (unix time), never less than nothing:
// `text` is a number of seconds or a date as in HTTP ("Wed, 21 Oct 2015 07:28:00 GMT"). nullopt: it
// is neither.
std::optional<Millis> ParseRetryAfter(const std::string& text, Millis now);

}  // namespace fencepost::consumer
