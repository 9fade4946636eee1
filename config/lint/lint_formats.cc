// kafka.decode and output.kafka.encode: whether there is a registry where a format needs one, and a
// use for it.
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"

namespace fencepost::config {
namespace {

bool NeedsRegistry(const std::string& format) { return format == "avro" || format == "protobuf"; }
bool IsDecoded(const std::string& format) {
  return NeedsRegistry(format) || format == "json_schema";
}

// The registry at `path`.
void LintRegistry(const Values& values, const std::string& path, Findings& findings) {
  if (!values.Given(path)) return;
  const std::string key = path + ".url";
  const std::string url = values.String(key);
  const Place at = values.ValuePlace(key);
  if (url.find('@') != std::string::npos) {
    findings.Error(at, "registry",
                   "{}: give user and password by {}.username and .password, not in the URL", key,
                   path);
  } else if (url.find_first_of("?#") != std::string::npos) {
    findings.Error(at, "registry", "{}: give the address alone, without ? and #", key);
  }
  if (values.Given(path + ".tls") && url.starts_with("http://")) {
    findings.Error(at, "registry",
                   "{} is http://, which has no TLS: write https://, or leave {}.tls out", key,
                   path);
  }
  LintPair(values, path + ".username", path + ".password", findings);
  LintPair(values, path + ".tls.certificate", path + ".tls.key", findings);
  const char* said = nullptr;
  for (const char* how : {".username", ".bearer", ".oauth2"}) {
    if (!values.Given(path + how)) continue;
    if (said != nullptr) {
      findings.Error(values.KeyPlace(path + how), "login", "{0}{1} and {0}{2}: give one of them",
                     path, said, how);
    }
    said = how;
  }
  for (const Text& header : values.Texts(path + ".headers")) {
    if (header.value.find_first_of("\r\n") == std::string::npos) continue;
    findings.Error(header.at, "value", "{}.headers.{}: a header is one line", path, header.name);
  }
}

void LintEncodePart(const Values& values, const std::string& part, Findings& findings) {
  const std::string path = "output.kafka.encode." + part;
  const auto key = [&](std::string_view last) { return fmt::format("{}.{}", path, last); };
  if (!values.Given(path) || AnyWrong(values, {key("format")})) return;
  if (values.Given(key("message")) && values.String(key("format")) != "protobuf") {
    findings.Error(values.KeyPlace(key("message")), "encode", "{} is of protobuf only",
                   key("message"));
  }
  if (values.Given(key("version")) && values.Given(key("schema"))) {
    findings.Error(values.KeyPlace(key("version")), "encode", "{} and {}: give one of them",
                   key("version"), key("schema"));
  }
  if (values.Number(key("register")) != 0 && !values.Given(key("schema"))) {
    findings.Error(values.KeyPlace(key("register")), "missing", "{} is missing: {} needs it",
                   key("schema"), key("register"));
  }
}

}  // namespace

void LintDecode(const Values& values, Findings& findings) {
  if (!values.Given("kafka.decode")) return;
  LintRegistry(values, "kafka.decode.registry", findings);
  if (AnyWrong(values, {"kafka.decode.value", "kafka.decode.key"})) return;
  std::string needs;
  bool decoded = false;
  for (const char* part : {"kafka.decode.value", "kafka.decode.key"}) {
    const std::string format = values.String(part);
    decoded = decoded || IsDecoded(format);
    if (needs.empty() && NeedsRegistry(format)) needs = part;
  }
  const bool has = values.Given("kafka.decode.registry");
  if (!needs.empty() && !has) {
    findings.Error(values.KeyPlace(needs), "registry",
                   "kafka.decode.registry is missing: {}: {} needs the schemas", needs,
                   values.String(needs));
  } else if (!decoded) {
    findings.Warning(values.KeyPlace("kafka.decode"), "decode",
                     "kafka.decode has no effect: json and bytes are taken as they are; give "
                     "kafka.decode.value or kafka.decode.key as avro, protobuf or json_schema");
  } else if (needs.empty() && has && !values.Given("output.kafka.encode")) {
    findings.Warning(values.KeyPlace("kafka.decode.registry"), "registry",
                     "kafka.decode.registry has no effect: only avro and protobuf need a registry");
  }
}

void LintEncode(const Values& values, Findings& findings) {
  if (!values.Given("output.kafka.encode")) return;
  if (!values.Given("output.kafka.encode.value") && !values.Given("output.kafka.encode.key")) {
    findings.Error(values.KeyPlace("output.kafka.encode"), "missing",
                   "output.kafka.encode: value or key is missing");
  }
  LintEncodePart(values, "value", findings);
  LintEncodePart(values, "key", findings);
  LintRegistry(values, "output.kafka.encode.registry", findings);
  if (!values.Given("output.kafka.encode.registry") && !values.Given("kafka.decode.registry")) {
    findings.Error(
        values.KeyPlace("output.kafka.encode"), "registry",
        "output.kafka.encode.registry is missing: output.kafka.encode needs the schemas");
  }
}

}  // namespace fencepost::config
