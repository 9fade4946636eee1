// What OpenTelemetry's standard variables say of traces, where the pipeline's file is silent. Pure;
// any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/traces/export_options.h"

namespace fencepost::metrics {

// observe.traces as a file has it.
struct TracesOfFile {
  consumer::TraceOptions options;
  std::function<bool(std::string_view key)> given;  // whether it has observe.traces.KEY
};

struct ResolvedTraces {
  ExportOptions options;  // off: no endpoint is known, or the environment says so
  // A line each, for the log: variables that cannot be used, and so are not. None names a value of
  // a header.
  std::vector<std::string> warnings;
};

// `variable` is getenv; an empty value is none. The file's endpoint needs no path: /v1/traces is
// added, as to OTEL_EXPORTER_OTLP_ENDPOINT.
ResolvedTraces ResolveTraces(
    const TracesOfFile& file,
    const std::function<std::optional<std::string>(const std::string& name)>& variable);

}  // namespace fencepost::metrics
