// A part of the record's value in its place, as the bytes that the value has there: `after` of a
// change event. A part that is null is a null value. A value that is not JSON, and one without the
// part where the selector does not end in '?', is a failure of class "bad_record".
#pragma once

#include "consumer/handlers/handler.h"
#include "consumer/json/json_reader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

class TakeHandler : public Handler {
 public:
  explicit TakeHandler(TakeHandlerOptions options) : part_(std::move(options.part)) {}

  HandlerResult Handle(const HandlerRequest& request, const std::stop_token& stop) override;

 private:
  const Selector part_;
  JsonReader json_;
};

}  // namespace fencepost::consumer
