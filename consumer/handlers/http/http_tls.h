// The files of handler.http.tls, looked at before the first call. libcurl reads them again for each
// new connection. Any thread.
#pragma once

#include <tl/expected.hpp>

#include "consumer/pipeline/handler_options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// Error: bad_config, with the file and what is wrong with it.
tl::expected<void, Error> CheckTlsFiles(const HttpHandlerOptions& options);

}  // namespace fencepost::consumer
