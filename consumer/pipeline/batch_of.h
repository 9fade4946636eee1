// How a handler of any kind takes its records together.
#pragma once

#include "consumer/pipeline/handler_options.h"

namespace fencepost::consumer {

inline BatchOptions BatchOf(const HandlerOptions& handler) {
  if (const auto* http = std::get_if<HttpHandlerOptions>(&handler.kind)) return http->batch;
  const auto* exec = std::get_if<ExecHandlerOptions>(&handler.kind);
  return exec == nullptr ? BatchOptions() : exec->batch;
}

}  // namespace fencepost::consumer
