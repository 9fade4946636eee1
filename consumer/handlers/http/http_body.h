// What a request carries of a record: `handler.http.body`. One thread.
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

}  // namespace fencepost::consumer
