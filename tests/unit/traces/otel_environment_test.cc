#include "metrics/traces/otel_environment.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/traces/trace_post.h"

namespace fencepost::metrics {
namespace {

using ::testing::ElementsAreArray;

using Variables = std::map<std::string, std::string>;
using File = std::map<std::string, std::string>;  // keys of observe.traces

ResolvedTraces Resolve(const File& file, const Variables& variables) {
  TracesOfFile of_file;
  std::set<std::string, std::less<>> keys;
  for (const auto& [key, value] : file) {
    keys.insert({"", key});
    if (key == "endpoint") of_file.options.endpoint = value;
    if (key == "sample") of_file.options.sample = std::stod(value);
    if (key == "headers") of_file.options.headers = {{"key", value}};
  }
  of_file.given = [&](std::string_view key) { return keys.contains(key); };
  return ResolveTraces(of_file, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// What differs from the defaults.
std::string TextOf(const ExportOptions& options) {
  const ExportOptions usual;
  const consumer::TraceOptions& traces = options.traces;
  std::string text = options.on() ? traces.endpoint : "off";
  const auto add = [&](std::string_view name, const auto& value, const auto& other) {
    if (value != other) text += fmt::format(" {}={}", name, value);
  };
  add("sample", traces.sample, usual.traces.sample);
  add("parent", traces.parent_decides, usual.traces.parent_decides);
  add("headers", traces.headers, usual.traces.headers);
  add("service", traces.service, usual.traces.service);
  add("resource", traces.resource, usual.traces.resource);
  add("timeout", traces.timeout.count(), usual.traces.timeout.count());
  add("certificate", options.certificate, usual.certificate);
  add("client_certificate", options.client_certificate, usual.client_certificate);
  add("client_key", options.client_key, usual.client_key);
  add("gzip", options.gzip, usual.gzip);
  add("queue", options.max_queue, usual.max_queue);
  add("batch", options.max_batch, usual.max_batch);
  add("delay", options.delay.count(), usual.delay.count());
  return text;
}

struct Row {
  const char* what;
  File file;
  Variables variables;
  std::string options;  // TextOf
  std::vector<std::string> warnings = {};
};

const std::string kAll = "OTEL_EXPORTER_OTLP_ENDPOINT";
const Variables kOn = {{kAll, "http://otel:4318"}};

Variables On(Variables more) {
  more.insert(kOn.begin(), kOn.end());
  return more;
}

// With an endpoint, and one variable more.
Row With(const char* name, const char* value, const std::string& options,
         std::vector<std::string> warnings = {}) {
  return {name,
          {},
          On({{name, value}}),
          "http://otel:4318/v1/traces" + (options.empty() ? "" : " " + options),
          std::move(warnings)};
}

std::vector<Row> Rows() {
  const std::string on = "http://otel:4318/v1/traces";
  return {
      {"nothing is said", {}, {}, "off"},
      {"the file's endpoint", {{"endpoint", "http://otel:4318"}}, {}, on},
      {"it has its path already", {{"endpoint", on}}, {}, on},
      {"a slash at its end", {{"endpoint", "http://otel:4318/"}}, {}, on},
      {"a path before it", {{"endpoint", "https://a/otlp/"}}, {}, "https://a/otlp/v1/traces"},
      {"a query behind it", {{"endpoint", "https://a/?key=1"}}, {}, "https://a/v1/traces?key=1"},
      {"other keys of the file, and no endpoint",
       {{"sample", "0.5"}},
       {},
       "off sample=0.5",
       {"observe.traces has no endpoint, so there are no traces: give it one"}},
      {"the environment's endpoint", {}, kOn, on},
      {"that of traces goes as it is",
       {},
       On({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x"}}),
       "https://t/x"},
      {"the file's endpoint before the environment's",
       {{"endpoint", "http://f"}},
       On({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x"}}),
       "http://f/v1/traces"},
      {"an empty variable is none", {}, {{kAll, "  "}}, "off"},
      {"an endpoint that is none",
       {},
       {{kAll, "otel:4318"}},
       "off",
       {"OTEL_EXPORTER_OTLP_ENDPOINT is no URL, so there are no traces: write http://HOST:4318"}},
      {"one of another scheme",
       {},
       {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://u:s3cret@otel"}},
       "off",
       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no URL, so there are no traces: write "
        "http://HOST:4318"}},
      {"other variables without an endpoint",
       {},
       {{"OTEL_TRACES_SAMPLER", "never"}, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}},
       "off"},
      {"switched off", {}, On({{"OTEL_SDK_DISABLED", "TRUE"}}), "off"},
      {"not switched off", {}, On({{"OTEL_SDK_DISABLED", "no"}}), on},
      {"switched off over the file",
       {{"endpoint", "http://f"}},
       {{"OTEL_SDK_DISABLED", "true"}},
       "off",
       {"OTEL_SDK_DISABLED=true: no traces go to observe.traces.endpoint"}},
      {"another exporter's business", {}, On({{"OTEL_TRACES_EXPORTER", "none"}}), "off"},
      {"which is not the file's",
       {{"endpoint", "http://f"}},
       {{"OTEL_TRACES_EXPORTER", "none"}},
       "http://f/v1/traces"},
      With("OTEL_TRACES_EXPORTER", "otlp", ""),
      With("OTEL_TRACES_EXPORTER", "zipkin", "",
           {"OTEL_TRACES_EXPORTER=zipkin is not known here and has no effect: write otlp or "
            "none"}),
      With("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", ""),
      With("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "",
           {"OTEL_EXPORTER_OTLP_PROTOCOL=http/json: spans are sent by http/protobuf to "
            "http://otel:4318, as OTLP's port 4318 takes them"}),
      {"gRPC's port becomes that of HTTP",
       {},
       {{kAll, "http://otel:4317"}, {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"}},
       on,
       {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc: spans are sent by http/protobuf to "
        "http://otel:4318, as OTLP's port 4318 takes them"}},
      {"but not in the file",
       {{"endpoint", "http://otel:4317"}},
       {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}},
       "http://otel:4317/v1/traces",
       {"OTEL_EXPORTER_OTLP_PROTOCOL=grpc: spans are sent by http/protobuf to "
        "http://otel:4317, as OTLP's port 4318 takes them"}},
      With("OTEL_EXPORTER_OTLP_HEADERS", "a=1, b = two%20words%3D ,c=",
           R"(headers=[("a", "1"), ("b", "two words="), ("c", "")])"),
      {"headers of traces before those of all",
       {},
       On({{"OTEL_EXPORTER_OTLP_HEADERS", "a=1"}, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2"}}),
       on + R"( headers=[("b", "2")])"},
      {"the file's headers before all",
       {{"headers", "f"}},
       On({{"OTEL_EXPORTER_OTLP_HEADERS", "a=1"}}),
       on + R"( headers=[("key", "f")])"},
      With("OTEL_EXPORTER_OTLP_HEADERS", "s3cret", "",
           {"OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,… with values percent-encoded, and has "
            "no effect"}),
      With("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%2", "",
           {"OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,… with values percent-encoded, and has "
            "no effect"}),
      With("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%0d%0ab: c", "",
           {"OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,… with values percent-encoded, and has "
            "no effect"}),
      With("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=s3cret", "",
           {"OTEL_EXPORTER_OTLP_TRACES_HEADERS is not NAME=VALUE,… with values percent-encoded, "
            "and has no effect"}),
      With("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", "timeout=2500"),
      With("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1s", "",
           {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=1s is not known here and has no effect: write a "
            "whole number from 1 to 1000000"}),
      With("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", "certificate=/ca.pem"),
      With("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/c.pem", "client_certificate=/c.pem"),
      With("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "/t.pem", "client_certificate=/t.pem"),
      With("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/c.key", "client_key=/c.key"),
      With("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/t.key", "client_key=/t.key"),
      With("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "gzip=true"),
      With("OTEL_EXPORTER_OTLP_COMPRESSION", "none", ""),
      With("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "zstd", "",
           {"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=zstd is not known here and has no effect: "
            "write gzip or none"}),
      With("OTEL_SERVICE_NAME", "orders", "service=orders"),
      With("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=a%2Cb,service.name=x",
           R"(service=x resource=[("deployment.environment", "a,b")])"),
      {"a service's own variable before its attribute",
       {},
       On({{"OTEL_SERVICE_NAME", "orders"}, {"OTEL_RESOURCE_ATTRIBUTES", "service.name=x"}}),
       on + " service=orders"},
      With("OTEL_RESOURCE_ATTRIBUTES", "a=1,b", "",
           {"OTEL_RESOURCE_ATTRIBUTES is not NAME=VALUE,… with values percent-encoded, and has no "
            "effect"}),
      With("OTEL_TRACES_SAMPLER", "always_on", "sample=1 parent=false"),
      With("OTEL_TRACES_SAMPLER", "always_off", "sample=0 parent=false"),
      With("OTEL_TRACES_SAMPLER", "traceidratio", "sample=1 parent=false"),
      With("OTEL_TRACES_SAMPLER", "parentbased_always_on", "sample=1"),
      With("OTEL_TRACES_SAMPLER", "parentbased_always_off", "sample=0"),
      With("OTEL_TRACES_SAMPLER", "jaeger_remote", "",
           {"OTEL_TRACES_SAMPLER=jaeger_remote is not known here and has no effect: write "
            "always_on, always_off, traceidratio, or one of these with parentbased_ before it"}),
      {"a ratio",
       {},
       On({{"OTEL_TRACES_SAMPLER", "parentbased_traceidratio"},
           {"OTEL_TRACES_SAMPLER_ARG", "0.25"}}),
       on + " sample=0.25"},
      {"a ratio that is none",
       {},
       On({{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", "1.5"}}),
       on + " sample=1 parent=false",
       {"OTEL_TRACES_SAMPLER_ARG=1.5 is not known here and has no effect: write a number from 0 "
        "to 1"}},
      {"the file's sample before the sampler",
       {{"sample", "0.5"}},
       On({{"OTEL_TRACES_SAMPLER", "always_on"}}),
       on + " sample=0.5"},
      With("OTEL_BSP_MAX_QUEUE_SIZE", "4096", "queue=4096"),
      With("OTEL_BSP_MAX_QUEUE_SIZE", "100", "queue=100 batch=100"),
      With("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "64", "batch=64"),
      With("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4096", "batch=2048"),
      With("OTEL_BSP_EXPORT_TIMEOUT", "2500", "timeout=2500"),
      {"a request's own timeout before a batch's",
       {},
       On({{"OTEL_EXPORTER_OTLP_TIMEOUT", "2000"}, {"OTEL_BSP_EXPORT_TIMEOUT", "2500"}}),
       on + " timeout=2000"},
      With("OTEL_PROPAGATORS", "tracecontext, b3,b3multi,baggage", ""),
      With("OTEL_PROPAGATORS", "tracecontext,jaeger", "",
           {"OTEL_PROPAGATORS=jaeger is not known here and has no effect: write tracecontext, b3, "
            "b3multi, baggage, or several with commas"}),
      With("OTEL_BSP_SCHEDULE_DELAY", "200", "delay=200"),
      With("OTEL_BSP_SCHEDULE_DELAY", "0", "",
           {"OTEL_BSP_SCHEDULE_DELAY=0 is not known here and has no effect: write a whole number "
            "from 1 to 1000000"}),
  };
}

TEST(OtelEnvironment, SaysWhatTheFileDoesNot) {
  for (const Row& row : Rows()) {
    const ResolvedTraces resolved = Resolve(row.file, row.variables);
    EXPECT_EQ(TextOf(resolved.options), row.options) << row.what;
    EXPECT_THAT(resolved.warnings, ElementsAreArray(row.warnings)) << row.what;
  }
}

TEST(ShownEndpoint, HasNeitherCredentialsNorPathNorQuery) {
  for (const auto& [url, shown] : std::map<std::string, std::string>{
           {"http://otel:4318/v1/traces", "http://otel:4318"},
           {"https://u:s3cret@otel/x?key=s3cret#y", "https://otel"},
           {"http://[::1]:4318", "http://[::1]:4318"},
           {"ftp://otel", ""},
           {"http://", ""},
       }) {
    EXPECT_EQ(ShownEndpoint(url), shown) << url;
  }
}

}  // namespace
}  // namespace fencepost::metrics
