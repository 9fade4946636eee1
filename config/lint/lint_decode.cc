// kafka.decode: whether there is a registry where a format needs one, and a use for it.
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"

namespace fencepost::config {
namespace {

bool NeedsRegistry(const std::string& format) { return format == "avro" || format == "protobuf"; }
bool IsDecoded(const std::string& format) {
  return NeedsRegistry(format) || format == "json_schema";
}

void LintUrl(const Values& values, Findings& findings) {
  const std::string url = values.String("kafka.decode.registry.url");
  const Place at = values.ValuePlace("kafka.decode.registry.url");
  if (url.find('@') != std::string::npos) {
    findings.Error(at, "registry",
                   "kafka.decode.registry.url: give user and password by "
                   "kafka.decode.registry.username and .password, not in the URL");
  } else if (url.find_first_of("?#") != std::string::npos) {
    findings.Error(at, "registry",
                   "kafka.decode.registry.url: give the address alone, without ? and #");
  }
  if (values.Given("kafka.decode.registry.tls") && url.starts_with("http://")) {
    findings.Error(at, "registry",
                   "kafka.decode.registry.url is http://, which has no TLS: write https://, or "
                   "leave kafka.decode.registry.tls out");
  }
}

}  // namespace

void LintDecode(const Values& values, Findings& findings) {
  if (!values.Given("kafka.decode")) return;
  if (values.Given("kafka.decode.registry")) {
    LintUrl(values, findings);
    LintPair(values, "kafka.decode.registry.username", "kafka.decode.registry.password", findings);
  }
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
                   fmt::format("kafka.decode.registry is missing: {}: {} needs the schemas", needs,
                               values.String(needs)));
  } else if (!decoded) {
    findings.Warning(values.KeyPlace("kafka.decode"), "decode",
                     "kafka.decode has no effect: json and bytes are taken as they are; give "
                     "kafka.decode.value or kafka.decode.key as avro, protobuf or json_schema");
  } else if (needs.empty() && has) {
    findings.Warning(values.KeyPlace("kafka.decode.registry"), "registry",
                     "kafka.decode.registry has no effect: only avro and protobuf need a registry");
  }
}

}  // namespace fencepost::config
