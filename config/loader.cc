#include "config/loader.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "config/lint/lint.h"
#include "config/read/merge.h"
#include "config/read/reader.h"
#include "config/read/tests_reader.h"
#include "config/read/tree.h"
#include "consumer/pipeline/read_topics.h"
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

// As far as they say it: what two patterns match together is not known.
bool ReadsOneOf(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto matched = [](const auto& entries, const consumer::ReadTopics& read) {
    return std::ranges::any_of(
        entries, [&](const auto& entry) { return !consumer::IsPattern(entry) && read.Has(entry); });
  };
  return std::ranges::find_first_of(a, b) != a.end() || matched(a, b) || matched(b, a);
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
    if (a.group == b.group && common(a.brokers, b.brokers) && ReadsOneOf(a.topics, b.topics)) {
      return &other;
    }
  }
  return nullptr;
}

struct Source {
  std::string name;
  tl::expected<std::string, std::string> text;  // or why it cannot be read
};

std::optional<Node> Parse(const Source& source, int number, Findings& findings) {
  const auto refuse = [&](const std::string& why) {
    findings.Error({1, 1, number}, "file", why);
    return std::nullopt;
  };
  if (!source.text) return refuse(source.text.error());
  if (source.text->size() > kMaxFileBytes) return refuse("larger than 1 MiB");
  if (!IsPlainText(*source.text)) return refuse("not a UTF-8 text without control characters");
  return ParseTree(*source.text, number, findings);
}

// The pipeline's file first. nullopt: one of them is no tree, and says nothing of the others' keys.
std::optional<Node> Merge(const std::vector<Source>& files,
                          const std::vector<std::string>& settings, Findings& findings) {
  std::vector<Node> trees;
  int number = 0;
  for (const Source& file : files) {
    if (auto tree = Parse(file, number++, findings)) trees.push_back(std::move(*tree));
  }
  if (trees.size() < files.size()) return std::nullopt;
  Node whole = std::move(trees.front());
  for (std::size_t i = 1; i < trees.size(); ++i) MergeBelow(whole, std::move(trees[i]), findings);
  for (const std::string& setting : settings) Set(whole, setting, number++, findings);
  return whole;
}

// Of one file alone, its SHA-256.
std::string ConfigHash(const std::vector<Source>& files, const std::vector<std::string>& settings) {
  std::string hashes;
  for (const Source& file : files) hashes += Sha256Hex(*file.text);
  for (const std::string& setting : settings) hashes += Sha256Hex(setting);
  return files.size() + settings.size() == 1 ? hashes : Sha256Hex(hashes);
}

LoadResult LoadSource(Source file, const Environment& environment, const Beside& beside) {
  LoadResult result;
  result.file = file.name;
  std::vector<Source> files{std::move(file)};
  for (const std::string& path : beside.with) files.push_back({path, environment.read_file(path)});
  for (const Source& source : files) result.sources.push_back(source.name);
  for (const std::string& setting : beside.set) result.sources.push_back(SettingName(setting));
  Findings findings(result.sources);
  std::optional<Values> values;
  const std::optional<Node> root = Merge(files, beside.set, findings);
  if (root) {
    values = ReadTree(*root, environment, findings);
    Lint(*values, findings);
    if (beside.tests) result.tests = ReadTests(*values, environment, findings);
    result.places = values->Places();
  }
  result.findings = findings.Take();
  if (values && !HasErrors(result.findings)) {
    Findings advice(result.sources);
    Advise(*values, advice);
    result.advice = advice.Take();
    Findings remarks(result.sources);
    TellWhatTheLockIsFor(*values, remarks);
    result.remarks = remarks.Take();
    result.options = values->options();
    result.options->config_hash = ConfigHash(files, beside.set);
  } else {
    result.tests.clear();
  }
  return result;
}

}  // namespace

Place LoadResult::PlaceOf(std::string_view path) const {
  for (;; path = path.substr(0, path.rfind('.'))) {
    if (const auto found = places.find(path); found != places.end()) return found->second;
    if (path.find('.') == std::string_view::npos) return {};
  }
}

LoadResult Load(const std::string& path, const Environment& environment, const Beside& beside) {
  return LoadSource({path, environment.read_file(path)}, environment, beside);
}

LoadResult LoadText(std::string_view text, const std::string& file, const Environment& environment,
                    const Beside& beside) {
  return LoadSource({file, std::string(text)}, environment, beside);
}

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const auto& [name, text] : ExampleFiles()) examples.push_back({name, text});
  return examples;
}

std::vector<Finding> CheckTogether(std::span<const LoadResult> files) {
  std::map<std::string, const LoadResult*> first;
  std::string keytab;  // the first one's
  std::vector<Finding> all;
  for (const LoadResult& file : files) {
    if (!file.options) continue;
    const auto [other, is_new] = first.emplace(file.options->name, &file);
    Findings findings(file.sources);
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
    for (const auto& [section, cluster] : ClustersOf(*file.options)) {
      const std::string& own = cluster.kerberos.keytab;
      const std::string path = fmt::format("{}.sasl.kerberos.keytab", section);
      if (keytab.empty()) keytab = own;
      if (!file.places.contains(path) || own == keytab) continue;
      findings.Error(file.PlaceOf(path), "sasl",
                     "{}.sasl.kerberos.keytab: a process has one keytab, and another one is {}",
                     section, keytab);
    }
    for (Finding& finding : findings.Take()) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace fencepost::config
