// The handler that a pipeline's options choose.
#pragma once

#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "consumer/handlers/runner.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// `concurrency`: calls at a time, at most (http; exec and jq have their own numbers below it).
// nullptr where there is no handler.
std::unique_ptr<HandlerRunner> MakeHandlerRunner(const HandlerOptions& options,
                                                 const std::string& pipeline, int concurrency,
                                                 ConsumerObserver* observer,
                                                 HandlerRunner::Answered answered);

// What can be told of a handler without starting it: a jq program that does not compile, a url that
// is none, a command that is not there. One line. Any thread.
tl::expected<void, Error> CheckHandler(const HandlerOptions& options);

}  // namespace fencepost::consumer
