// What an exporter of spans works by: a file's observe.traces, and what only the environment says.
// Values; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "consumer/pipeline/options.h"

namespace fencepost::metrics {

using consumer::Millis;

struct ExportOptions {
  consumer::TraceOptions traces;
  std::string certificate{};  // file with the certificates that are trusted; empty: the system's
  std::string client_certificate{};  // file in PEM; empty: none is shown
  std::string client_key{};          // file with its key; empty: none, or in the certificate's
  bool gzip = false;                 // of what is sent
  std::size_t max_queue = 2048;      // spans that wait
  std::size_t max_batch = 512;       // of one request; at most max_queue
  Millis delay{5000};                // a span waits so long for others
  Millis backoff{1000};              // before a request is sent again; doubled each time

  [[nodiscard]] bool on() const { return !traces.endpoint.empty(); }
};

}  // namespace fencepost::metrics
