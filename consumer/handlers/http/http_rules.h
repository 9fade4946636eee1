// What a request carries of a record, and what a good answer makes of it: `handler.http.body` and
// `result`. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "consumer/handlers/handler.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class HttpBodyRule {
 public:
  // Error: the program of `body` does not compile.
  static tl::expected<HttpBodyRule, Error> Make(const HttpHandlerOptions& options);

  // nullopt: the request has no body. A jq program gives JSON, on one line. Error: nothing is sent,
  // the record is bad: the program fails on it, or gives not exactly one result.
  tl::expected<std::optional<std::string>, HandlerFailure> Of(const HandlerCall& call);

 private:
  HttpBody body_ = HttpBody::kValue;
  std::unique_ptr<Handler> program_;  // kJq
};

class HttpResultRule {
 public:
  // Error: the program of `result` does not compile.
  static tl::expected<HttpResultRule, Error> Make(const HttpHandlerOptions& options);

  // Of a record into which no answer could be put, before the service is called.
  std::optional<HandlerFailure> Refusal(const HandlerCall& call);
  // `answer` is the decoded body; nullopt: there is none (204). Where it has to be JSON, no body
  // and an empty one are null, and what is not JSON is a failure of class "bad_answer".
  HandlerResult Apply(const HandlerCall& call, std::optional<std::string> answer);

 private:
  HandlerResult Merged(const HandlerCall& call, std::string_view answer);
  HandlerResult Computed(const HandlerCall& call, std::string_view answer);

  HttpResult result_ = HttpResult::kReplace;
  std::string pointer_;               // kMerge
  std::unique_ptr<Handler> program_;  // kJq
  int answer_levels_ = 0;             // kMerge, kJq: of objects and arrays in the answer
};

}  // namespace fencepost::consumer
