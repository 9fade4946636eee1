// What the files of lint share. Internal to config.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/read/defaults.h"
#include "config/read/reader.h"
#include "config/text/finding.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/read_topics.h"

namespace fencepost::config {

void LintHandler(const Values& values, Findings& findings);     // handler, retry
void LintHttp(const Values& values, Findings& findings);        // handler.http
void LintDeadLetter(const Values& values, Findings& findings);  // and on_…: dead_letter
void LintDecode(const Values& values, Findings& findings);      // kafka.decode
void LintEncode(const Values& values, Findings& findings);      // output.kafka.encode
void LintKafka(const Values& values, Findings& findings);       // tls, sasl, librdkafka
// brokers, tls and sasl of an output's `section`; `cluster`: what they say.
void LintOtherCluster(const Values& values, const std::string& section,
                      const consumer::ClusterOptions& cluster, Findings& findings);
void LintLockNodes(const Values& values, Findings& findings);  // nodes, tls
void LintLockLogin(const Values& values, Findings& findings);  // of the lock nodes
void LintOutput(const Values& values, Findings& findings);
// Tables, statements and effects: output.postgres, output.mysql, output.sqlite.
void LintEffects(const Values& values, Findings& findings);
// on_conflict, fence, tombstones, of the section at `path` in `values`.
void LintRows(const Values& pipeline, const Values& values, std::string_view path,
              Findings& findings);
// A condition, or a program of jq: `when`.
void LintWhen(const Values& values, std::string_view path, Findings& findings);

inline constexpr std::string_view kDsn = "output.postgres.dsn";
// Parts of the dsn that are, or hold, a ${…} in the file.
std::vector<consumer::DsnPart> PartsByVariable(const Values& values);

// What an output writes, each with its key.
inline std::vector<std::pair<std::string_view, const Text*>> OutputSelectors(const Values& values) {
  std::vector<std::pair<std::string_view, const Text*>> selectors;
  for (const Key& key : Schema()) {
    for (const Values& section : values.Sections(key.path)) {
      const auto of_section = OutputSelectors(section);
      selectors.insert(selectors.end(), of_section.begin(), of_section.end());
    }
    const bool selector = key.type == Type::kSelector || key.type == Type::kSelectors ||
                          key.type == Type::kSelectorMap;
    if (!selector || !key.path.starts_with("output.")) continue;
    for (const Text& text : values.Texts(key.path)) {
      if (key.or_word.empty() || text.value != key.or_word) selectors.emplace_back(key.path, &text);
    }
  }
  return selectors;
}

// How two durations must stand to each other: `text` has both, each with its value.
struct Relation {
  std::string_view first, second;
  bool (*holds)(const Milliseconds&, const Milliseconds&);
  Severity severity;
  std::string_view rule;
  const char* text;
  std::string_view only_with = "";  // a section
};
void LintRelation(const Relation& relation, const Values& values, Findings& findings);

inline bool AnyWrong(const Values& values, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](std::string_view path) { return values.Wrong(path); });
}

// Of two keys that need each other, the one that is given alone.
void LintPair(const Values& values, std::string_view first, std::string_view second,
              Findings& findings);

// The key that the user wrote of the two; both may be there, or neither.
inline Place PlaceOfEither(const Values& values, std::string_view first, std::string_view second) {
  return values.Given(first) || !values.Given(second) ? values.ValuePlace(first)
                                                      : values.ValuePlace(second);
}

// How kafka.topics reads a topic: "one of", "matched by "^a.*" of"; empty: it does not.
inline std::string ReadBy(const Values& values, const std::string& topic) {
  for (const Text& entry : values.Texts("kafka.topics")) {
    if (!consumer::ReadTopics({entry.value}).Has(topic)) continue;
    return consumer::IsPattern(entry.value) ? "matched by " + entry.shown + " of" : "one of";
  }
  return "";
}

// Names that the section's `name` gives, or, where it is a map, those that its `of` and `otherwise`
// may choose; each with its key.
std::vector<std::pair<std::string, const Text*>> ChoicesOf(const Values& values,
                                                           const std::string& name);
// `otherwise` of the map that `name` may be: a name that was most likely meant as the word skip.
void LintOtherwise(const Values& values, const std::string& name, Findings& findings);
// All topics that output.kafka may write to.
std::vector<std::pair<std::string, const Text*>> OutputTopics(const Values& values);

// Whether they are one, as far as the brokers tell.
inline bool OneCluster(const consumer::ClusterOptions& a, const consumer::ClusterOptions& b) {
  return std::ranges::find_first_of(a.brokers, b.brokers) != a.brokers.end();
}

inline bool ExactlyOnce(const Values& values) {
  return !values.Wrong("guarantee") && values.String("guarantee") == "exactly-once";
}

}  // namespace fencepost::config
