// A pipeline file from anywhere: options or errors, and what is said of it is fit to print, at a
// place in the file, and holds no secret.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/loader.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

constexpr std::string_view kSecret = "hunter2";

config::Environment FakeEnvironment() {
  config::Environment environment;
  environment.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "SECRET") return std::string(kSecret);
    return std::nullopt;
  };
  environment.read_file = [](const std::string& path) -> tl::expected<std::string, std::string> {
    if (path == "/run/secrets/redis") return std::string(kSecret) + "\n";
    return tl::unexpected(std::string("there is no such file"));
  };
  return environment;
}

void CheckFinding(const config::Finding& finding, std::string_view text) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  FENCEPOST_CHECK(finding.line >= 1 && finding.col >= 1, FormatFinding(finding));
  FENCEPOST_CHECK(finding.line <= lines + 1, FormatFinding(finding));
  FENCEPOST_CHECK(!finding.message.empty() && IsOneLine(finding.message), Shown(finding.message));
  FENCEPOST_CHECK(IsOneLine(FormatFindingGithub(finding)), Shown(finding.message));
  const auto rules = config::Rules();
  FENCEPOST_CHECK(std::ranges::find(rules, finding.rule, &config::Rule::name) != rules.end(),
                  finding.rule);
  // What the file itself does not hold must have come from the environment.
  FENCEPOST_CHECK(text.find(kSecret) != std::string_view::npos ||
                      finding.message.find(kSecret) == std::string::npos,
                  finding.message);
}

}  // namespace

void OneInput(std::string_view input) {
  static const config::Environment environment = FakeEnvironment();
  const config::LoadResult result = config::LoadText(input, "p.yaml", environment);
  FENCEPOST_CHECK(result.options.has_value() != HasErrors(result.findings), "options or errors");
  for (const config::Finding& finding : result.findings) CheckFinding(finding, input);
  for (const config::Finding& finding : result.advice) CheckFinding(finding, input);
  const auto json = nlohmann::json::parse(config::FormatFindingsJson(result.findings));
  FENCEPOST_CHECK(json.size() == result.findings.size(), json.dump());
  const bool sorted = std::ranges::is_sorted(result.findings, {}, [](const config::Finding& one) {
    return config::Place{one.line, one.col};
  });
  FENCEPOST_CHECK(sorted, json.dump());
}

}  // namespace fencepost::fuzz
