// What a collector gets, as OpenTelemetry's own package for Python reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "metrics/traces/otlp.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::testing {
namespace {

using namespace std::string_literals;
using consumer::Nanos;
using nlohmann::json;

constexpr const char* kDecode = R"(
import sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = ExportTraceServiceRequest.FromString(open(sys.argv[1], "rb").read())
assert request.SerializeToString() == open(sys.argv[1], "rb").read()
print(MessageToJson(request))
)";

// Bytes are in base64.
json Decoded(const std::string& body) {
  const TempDir folder;
  const Finished python =
      RunToEnd({.argv = {SourcePath("tests/support/fetch-python")}, .separate_stderr = true},
               std::chrono::minutes(5));
  const Finished decoded = RunToEnd({.argv = {python.output.substr(0, python.output.find('\n')),
                                              "-c", kDecode, folder.Write("body", body)}});
  EXPECT_EQ(decoded.exit_code, 0) << decoded.output;
  return json::parse(decoded.output, nullptr, false);
}

TEST(Otlp, IsReadByTheReferenceForPython) {
  const std::vector<consumer::Span> spans{
      {.context = {0, 0x0102030405060708, 0xff, true},
       .parent = 1,
       .name = "orders process",
       .kind = consumer::SpanKind::kConsumer,
       .start = Nanos(1'000),
       .end = Nanos(2'000),
       .attributes = {{"text", "ü"s}, {"number", std::int64_t{-1}}, {"zero", std::int64_t{0}}},
       .events = {{.at = Nanos(1'500),
                   .name = "retry",
                   .attributes = {{"attempt", std::int64_t{2}}}}},
       .links = {{0, 1, 2, false}},
       .error = "503"}};
  const json request =
      Decoded(metrics::TraceRequest({.service = "orders", .version = "1", .instance = "w"}, spans));
  EXPECT_EQ(request, json::parse(R"({"resourceSpans": [{
    "resource": {"attributes": [
      {"key": "service.name", "value": {"stringValue": "orders"}},
      {"key": "service.version", "value": {"stringValue": "1"}},
      {"key": "service.instance.id", "value": {"stringValue": "w"}}]},
    "scopeSpans": [{
      "scope": {"name": "fencepost", "version": "1"},
      "schemaUrl": "https://opentelemetry.io/schemas/1.30.0",
      "spans": [{
        "traceId": "AAAAAAAAAAABAgMEBQYHCA==", "spanId": "AAAAAAAAAP8=",
        "parentSpanId": "AAAAAAAAAAE=", "name": "orders process", "kind": "SPAN_KIND_CONSUMER",
        "startTimeUnixNano": "1000", "endTimeUnixNano": "2000",
        "attributes": [
          {"key": "text", "value": {"stringValue": "ü"}},
          {"key": "number", "value": {"intValue": "-1"}},
          {"key": "zero", "value": {"intValue": "0"}}],
        "events": [{"timeUnixNano": "1500", "name": "retry",
                    "attributes": [{"key": "attempt", "value": {"intValue": "2"}}]}],
        "links": [{"traceId": "AAAAAAAAAAAAAAAAAAAAAQ==", "spanId": "AAAAAAAAAAI="}],
        "status": {"message": "503", "code": "STATUS_CODE_ERROR"},
        "flags": 1}]}]}]})"));
}

}  // namespace
}  // namespace fencepost::testing
