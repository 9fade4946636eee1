#include "config/loader.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "config/lint/lint.h"
#include "config/read/reader.h"
#include "config/read/tests_reader.h"
#include "config/read/tree.h"
#include "locking/base/digest.h"

namespace fencepost::config {

// (name, text) of config/examples.
std::span<const std::pair<std::string_view, std::string_view>> ExampleFiles();

namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

// YAML forbids these, and its parser would take them for another encoding.
bool IsPlainText(std::string_view text) {
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') ||
           c == 0x7f;
  };
  return std::none_of(text.begin(), text.end(), is_control) &&
         simdjson::validate_utf8(text.data(), text.size());
}

// One before it in `files` that reads a topic in the same group, by what both say of the cluster.
const LoadResult* SharesRecords(const LoadResult& file, std::span<const LoadResult> files) {
  const auto common = [](const auto& a, const auto& b) {
    return std::ranges::find_first_of(a, b) != a.end();
  };
  for (const LoadResult& other : files) {
    if (&other == &file) break;
    if (!other.options) continue;
    const consumer::KafkaOptions& a = file.options->kafka;
    const consumer::KafkaOptions& b = other.options->kafka;
    if (a.group == b.group && common(a.brokers, b.brokers) && common(a.topics, b.topics)) {
      return &other;
    }
  }
  return nullptr;
}

LoadResult Unreadable(const std::string& file, const std::string& why) {
  Findings findings(file);
  findings.Error({}, "file", why);
  LoadResult result;
  result.file = file;
  result.findings = findings.Take();
  return result;
}

}  // namespace

Place LoadResult::PlaceOf(std::string_view path) const {
  for (;; path = path.substr(0, path.rfind('.'))) {
    if (const auto found = places.find(path); found != places.end()) return found->second;
    if (path.find('.') == std::string_view::npos) return {};
  }
}

LoadResult LoadText(std::string_view text, const std::string& file,
                    const Environment& environment) {
  if (text.size() > kMaxFileBytes) return Unreadable(file, "larger than 1 MiB");
  if (!IsPlainText(text)) return Unreadable(file, "not a UTF-8 text without control characters");
  LoadResult result;
  result.file = file;
  Findings findings(file);
  std::optional<Values> values;
  const std::optional<Node> root = ParseTree(text, findings);
  if (root) {
    values = ReadTree(*root, environment, findings);
    Lint(*values, findings);
    result.tests = ReadTests(*values, environment, findings);
    result.places = values->Places();
  }
  result.findings = findings.Take();
  if (values && !HasErrors(result.findings)) {
    Findings advice(file);
    Advise(*values, advice);
    result.advice = advice.Take();
    Findings remarks(file);
    TellWhatTheLockIsFor(*values, remarks);
    result.remarks = remarks.Take();
    result.options = values->options();
    result.options->config_hash = Sha256Hex(text);
  } else {
    result.tests.clear();
  }
  return result;
}

LoadResult Load(const std::string& path, const Environment& environment) {
  const auto text = environment.read_file(path);
  if (!text) return Unreadable(path, text.error());
  return LoadText(*text, path, environment);
}

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const auto& [name, text] : ExampleFiles()) examples.push_back({name, text});
  return examples;
}

std::vector<Finding> CheckTogether(std::span<const LoadResult> files) {
  std::map<std::string, const LoadResult*> first;
  std::vector<Finding> all;
  for (const LoadResult& file : files) {
    if (!file.options) continue;
    const auto [other, is_new] = first.emplace(file.options->name, &file);
    Findings findings(file.file);
    if (!is_new) {
      findings.Error(file.PlaceOf("name"), "duplicate-pipeline",
                     "the pipeline name \"{}\" is that of {} too; one process runs a name once",
                     file.options->name, other->second->file);
    } else if (const LoadResult* shares = SharesRecords(file, files)) {
      findings.Error(file.PlaceOf("kafka.group"), "duplicate-pipeline",
                     "{} reads one of kafka.topics in the same group \"{}\": each would get a part "
                     "of the records; give each a kafka.group of its own",
                     shares->file, file.options->kafka.group);
    }
    for (Finding& finding : findings.Take()) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace fencepost::config
