#include "tests/support/collector.h"

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/support/http.h"
#include "tests/support/paths.h"

namespace fencepost::testing {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::minutes kToBuild{10};
constexpr std::chrono::seconds kToStart{60};
constexpr int kCannotBeHad = 3;  // of fetch-collector

struct Program {
  std::string path;
  std::string why_not;
};

const Program& TheProgram() {
  static const Program program = [] {
    auto built = RunToEnd(
        {.argv = {SourcePath("tests/support/fetch-collector")}, .separate_stderr = true}, kToBuild);
    const char* const ci = std::getenv("CI");
    const bool must_be_had = ci != nullptr && std::string(ci) == "true";
    if (built.exit_code == kCannotBeHad && !must_be_had) {
      return Program{.path = "", .why_not = built.error_output};
    }
    if (built.exit_code != 0) throw std::runtime_error(built.error_output);
    built.output.erase(built.output.find_last_not_of('\n') + 1);
    return Program{.path = built.output, .why_not = ""};
  }();
  return program;
}

// [{key: "a", value: {stringValue: "x"}}] → {a: "x"}. Whole numbers are texts in OTLP's JSON.
Json Attributes(const Json& of) {
  Json flat = Json::object();
  for (const Json& pair : of.value("attributes", Json::array())) {
    const Json& value = pair.at("value");
    const auto number = value.find("intValue");
    Json& to = flat[pair.at("key").get<std::string>()];
    if (number == value.end()) {
      to = value.empty() ? Json() : *value.begin();
    } else {
      to = std::stoll(number->is_string() ? number->get<std::string>() : number->dump());
    }
  }
  return flat;
}

Json Span(Json span, const Json& resource, const Json& scope) {
  for (const char* const part : {"events", "links"}) {
    for (Json& one : span[part] = span.value(part, Json::array())) {
      one["attributes"] = Attributes(one);
    }
  }
  span["attributes"] = Attributes(span);
  span["resource"] = resource;
  span["scope"] = scope;
  return span;
}

}  // namespace

const std::string& Collector::WhyNot() { return TheProgram().why_not; }

Collector::Collector() {
  const std::string config = dir_.Write("config.yaml", fmt::format(R"(
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{}"}}}}}}}}
exporters: {{file: {{path: "{}", flush_interval: 50ms}}}}
service:
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
)",
                                                                   port_, dir_.File("spans.json")));
  process_ =
      std::make_unique<Process>(ProcessOptions{.argv = {TheProgram().path, "--config", config}});
  // An empty request is 200 or 400, never nothing, once it listens.
  const auto up = [&] { return HttpPost("127.0.0.1", port_, "/v1/traces").status != 0; };
  const bool started = WaitUntil(
      kToStart, [&] { return !process_->Running() || up(); }, "the collector");
  if (started && process_->Running()) return;
  throw std::runtime_error("the collector did not start:\n" + process_->Output());
}

std::string Collector::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

Json Collector::Spans() const {
  Json spans = Json::array();
  std::istringstream lines(ReadFile(dir_.File("spans.json")));
  for (std::string line; std::getline(lines, line);) {
    const Json request = Json::parse(line, nullptr, false);
    if (request.is_discarded()) continue;  // it is being written
    for (const Json& of_resource : request.at("resourceSpans")) {
      const Json resource = Attributes(of_resource.value("resource", Json::object()));
      for (const Json& of_scope : of_resource.at("scopeSpans")) {
        const Json scope = of_scope.value("scope", Json::object());
        for (const Json& span : of_scope.at("spans")) {
          spans.push_back(Span(span, resource, scope));
        }
      }
    }
  }
  return spans;
}

}  // namespace fencepost::testing
