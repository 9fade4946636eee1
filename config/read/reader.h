// The tree of a pipeline file held against the schema: what it says, as typed values with their
// places.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/read/tree.h"
#include "config/schema/schema.h"
#include "config/text/finding.h"
#include "config/text/scalar.h"
#include "config/text/variables.h"
#include "consumer/record/selector.h"

namespace fencepost::config {

// What is given at one key. A key whose value is wrong has no entry in Values (but counts as
// given); a map of the user's own names keeps what is good in it.
struct Entry : Given {
  // kSections, kAny, kRows: read elsewhere (tests_reader.h). Lives as long as the tree.
  const Node* node = nullptr;
  bool complete = true;
};

class Values {
 public:
  // Whether the file has the key, good or bad.
  [[nodiscard]] bool Given(std::string_view path) const { return places_.contains(path); }
  // Whether it is given, but wrong: that was told, and says nothing about its neighbours.
  [[nodiscard]] bool Wrong(std::string_view path) const {
    return Given(path) && Find(path) == nullptr;
  }
  // Of the key, or of the nearest section around it that the file has.
  [[nodiscard]] Place KeyPlace(std::string_view path) const;
  // Of every key that the file has, by its path: of the value where it has one.
  [[nodiscard]] std::map<std::string, Place, std::less<>> Places() const;
  // Of the value, or as KeyPlace.
  [[nodiscard]] Place ValuePlace(std::string_view path) const;
  // nullptr where the key is not given or wrong.
  [[nodiscard]] const Entry* Find(std::string_view path) const;
  // What is good of its texts, also where a map has wrong ones; none where the key is not given.
  [[nodiscard]] std::span<const Text> Texts(std::string_view path) const;
  // The selector at a key, or nullptr as Find.
  [[nodiscard]] const consumer::Selector* FindSelector(std::string_view path) const;

  [[nodiscard]] std::vector<consumer::Selector> Selectors(std::string_view path) const;

  // Of a list of sections that makes options (output.postgres.effects): the values of each.
  [[nodiscard]] std::span<const Values> Sections(std::string_view path) const;

  // Of what is good in it.
  [[nodiscard]] const PipelineOptions& options() const { return options_; }

  // These fall back to the schema's default; without one to "", 0 or an empty list.
  [[nodiscard]] std::string String(std::string_view path) const;
  [[nodiscard]] std::int64_t Number(std::string_view path) const;
  [[nodiscard]] Milliseconds Duration(std::string_view path) const {
    return Milliseconds(Number(path));
  }
  [[nodiscard]] std::vector<std::string> Strings(std::string_view path) const;

 private:
  friend class Reader;
  [[nodiscard]] const Entry* FindPart(std::string_view path) const;  // incomplete ones too
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::vector<Values>, std::less<>> sections_;
  PipelineOptions options_;
};

// Errors go to `findings`; what is good is read all the same. `root` must outlive the values.
Values ReadTree(const Node& root, const Environment& environment, Findings& findings);
// The same for one map of a list of sections; the values have the schema's paths (tests.given.key).
// Other than a map is an error, and gives no values.
Values ReadSectionOf(std::string_view list, const Node& map, const Environment& environment,
                     Findings& findings);

Node::Kind KindFor(Type type);               // what the key of a type needs
std::string_view KindText(Node::Kind kind);  // "a map"

// A value that is right, as written in the file: the value of ${…} is not printed.
inline std::string Shown(const Values& values, std::string_view path) {
  const Entry* entry = values.Find(path);
  return entry == nullptr ? "" : entry->texts.front().shown;
}

}  // namespace fencepost::config
