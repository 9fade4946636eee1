#include "config/read/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "config/read/defaults.h"
#include "config/schema/checks.h"
#include "config/text/suggestion.h"
#include "locking/base/check.h"

namespace fencepost::config {
namespace {

constexpr std::string_view kIdForms =
    "record_id is one of position, key, header:NAME, json:/POINTER, key:/POINTER, or a list of "
    "those after position";

std::string Join(std::string_view section, std::string_view name) {
  if (section.empty() || name.empty()) return std::string(section.empty() ? name : section);
  return fmt::format("{}.{}", section, name);
}

tl::expected<std::int64_t, std::string> ParseNumber(Type type, std::string_view text) {
  if (type == Type::kInteger) return ParseInteger(text);
  if (type == Type::kDecimal) return ParseThousandths(text);
  const auto as_number = [](auto value) { return static_cast<std::int64_t>(value); };
  if (type == Type::kBoolean) return ParseBoolean(text).map(as_number);
  if (type == Type::kSize) return ParseSize(text).map(as_number);
  return ParseDuration(text).map([](Milliseconds d) { return std::int64_t{d.count()}; });
}

// For the schema's own texts.
std::int64_t KnownNumber(const Key& key, std::string_view text) {
  const auto number = ParseNumber(key.type, text);
  FENCEPOST_CHECK(number, fmt::format("{} in the schema: {}", key.path, text));
  return *number;
}

bool IsNumber(Type type) {
  return type == Type::kInteger || type == Type::kDecimal || type == Type::kBoolean ||
         type == Type::kDuration || type == Type::kSize;
}

std::string ChoicesText(const Key& key) {
  std::string text = fmt::format("{}", fmt::join(key.choices, " | "));
  if (!key.or_section) return text;
  for (const std::string_view name : ChildrenOf(key.path)) {
    text += fmt::format(" | {{{}: …}}", name);
  }
  return text;
}

}  // namespace

class Reader {
 public:
  Reader(const Environment& environment, Findings& findings)
      : environment_(environment), findings_(findings) {}

  Values Read(const Node& root) {
    values_.places_[""] = Place{};
    ReadSection("", root, Place{});
    values_.options_ = OptionsOf(values_, environment_);
    return std::move(values_);
  }

  Values ReadOne(std::string_view list, const Node& map) {
    in_a_list_ = true;
    values_.places_[""] = map.at;
    values_.places_[std::string(list)] = map.at;
    if (map.kind == Node::Kind::kMap) {
      ReadSection(list, map, map.at);
    } else {
      findings_.Error(map.at, "type", "{} needs maps, here is {}", list, KindText(map.kind));
    }
    return std::move(values_);
  }

 private:
  void ReadSection(std::string_view section, const Node& node, Place key_at) {
    for (const auto& [key_node, value] : node.entries) {
      const std::string path = Join(section, key_node.text);
      const Key* key = FindKey(path);
      if (key == nullptr || key_node.text.find('.') != std::string::npos) {
        TellUnknown(section, key_node);
        continue;
      }
      values_.places_[path] = key_node.at;
      ReadKey(*key, key_node, value);
    }
    for (const Key& key : Schema()) {
      if (!key.required || ParentOf(key.path) != section || values_.Given(key.path)) continue;
      // The pipeline lacks it, not what is given beside its file. A list is in one file.
      const bool whole = key_at.source == 0 || in_a_list_;
      findings_.Error(whole ? key_at : Place{}, "missing", "{} is missing", key.path);
    }
  }

  void TellUnknown(std::string_view section, const Node& key) {
    std::string message = fmt::format("unknown key \"{}\"", key.text);
    if (!section.empty()) message += fmt::format(" in {}", section);
    if (const auto near = Nearest(key.text, ChildrenOf(section))) {
      message += fmt::format("; did you mean \"{}\"?", *near);
    }
    std::vector<std::string_view> elsewhere;
    for (const Key& other : Schema()) {
      if (NameOf(other.path) != key.text || InTests(other.path) != InTests(section)) continue;
      if (elsewhere.size() < 3) elsewhere.push_back(other.path);
    }
    if (!elsewhere.empty()) {
      message += fmt::format("; there is {}", fmt::join(elsewhere, ", "));
    }
    findings_.Error(key.at, "unknown-key", message);
  }

  void ReadKey(const Key& key, const Node& key_node, const Node& value) {
    if (key.type == Type::kAny || (key.or_by_table && value.kind == Node::Kind::kMap)) {
      Keep(key, value);
    } else if (value.kind == Node::Kind::kNull) {
      findings_.Error(key_node.at, "type", "{} has no value", key.path);
    } else if (key.or_section && value.kind == Node::Kind::kMap) {
      ReadSectionInstead(key, key_node, value);
    } else if (key.type == Type::kSecret && value.kind == Node::Kind::kMap) {
      ReadSecretFile(key, value);
    } else if (const bool or_list = key.or_selectors || key.or_texts;
               value.kind != KindFor(key.type) && !(or_list && value.kind == Node::Kind::kList) &&
               !(key.by_commas && value.kind == Node::Kind::kScalar)) {
      findings_.Error(value.at, "type", "{} needs {}{}, here is {}", key.path,
                      KindText(KindFor(key.type)),
                      or_list                     ? " or a list"
                      : key.type == Type::kSecret ? " or {file: PATH}"
                      : key.or_section            ? " or a map"
                                                  : "",
                      KindText(value.kind));
    } else if (key.type == Type::kSection) {
      ReadSection(key.path, value, key_node.at);
    } else if (value.kind == Node::Kind::kList) {
      ReadList(key, key_node, value);
    } else if (key.by_commas) {
      Node list;
      list.items.push_back(value);
      ReadList(key, key_node, list);
    } else if (value.kind == Node::Kind::kMap) {
      ReadMap(key, key_node, value);
    } else {
      ReadScalar(key, value);
    }
  }

  void ReadSectionInstead(const Key& key, const Node& key_node, const Node& map) {
    if (map.entries.size() == 1 || key.type != Type::kChoice) {
      return ReadSection(key.path, map, key_node.at);
    }
    findings_.Error(map.at, "type", "{} needs one of {}, here is a map of {}", key.path,
                    ChoicesText(key), map.entries.size());
  }

  // {file: PATH}. What is no path may be the secret itself, and paths are shown.
  void ReadSecretFile(const Key& key, const Node& map) {
    const Node* const path = map.entries.size() == 1 ? &map.entries.front().value : nullptr;
    if (!path || path->kind != Node::Kind::kScalar || map.entries.front().key.text != "file") {
      return findings_.Error(map.at, "type", "{} needs a text or {{file: PATH}}, here is a map",
                             key.path);
    }
    const auto text = Expanded(key, *path, Lines::kOne);
    if (text && text->value.starts_with('/')) {
      values_.entries_[key.path] = {{.texts = {*text}, .is_file = true}};
    } else if (text) {
      findings_.Error(path->at, "value", "{}: a file's path begins with /", key.path);
    }
  }

  void Keep(const Key& key, const Node& value) {
    Entry entry;
    entry.node = &value;
    values_.entries_[key.path] = std::move(entry);
  }

  void ReadScalar(const Key& key, const Node& value) {
    std::optional<Text> text = ReadText(key, value);
    if (!text) return;
    Entry entry;
    if (!key.or_word.empty() && text->value == key.or_word) {
      entry.number = kForever.count();
    } else if (IsNumber(key.type)) {
      const auto number = ParseNumber(key.type, text->value);
      if (!number) {
        Tell(key, *text, "value", number.error());
        return;
      }
      entry.number = *number;
      if (!InRange(key, *text, *number)) return;
    }
    if (key.type == Type::kChoice && !ChoiceIsGood(key, *text)) return;
    if (key.type == Type::kSelector && !ReadSelector(key, *text)) return;
    entry.texts.push_back(std::move(*text));
    values_.entries_[key.path] = std::move(entry);
  }

  void ReadList(const Key& key, const Node& key_node, const Node& list) {
    if (list.items.empty() && !key.may_be_empty) {
      findings_.Error(key_node.at, "value", "{} is empty", key.path);
      return;
    }
    if (key.type == Type::kSections || key.type == Type::kRows) {
      Keep(key, list);
      if (key.type == Type::kRows || InTests(key.path)) return;
      std::vector<Values>& sections = values_.sections_[key.path];
      for (const Node& item : list.items) {
        Values one = Reader(environment_, findings_).ReadOne(key.path, item);
        if (item.kind == Node::Kind::kMap) sections.push_back(std::move(one));
      }
      return;
    }
    Entry entry;
    entry.is_list = true;
    bool good = true;
    for (const Node& item : list.items) {
      if (key.by_commas && item.kind == Node::Kind::kScalar) {
        good = ReadByCommas(key, item, entry.texts) && good;
        continue;
      }
      std::optional<Text> text = ReadItem(key, item);
      const bool selector = key.type == Type::kSelectors || key.or_selectors;
      if (text && selector && !ReadSelector(key, *text)) text.reset();
      good = good && text;
      if (text) entry.texts.push_back(std::move(*text));
    }
    if (good) {
      values_.entries_[key.path] = std::move(entry);
    }
  }

  void ReadMap(const Key& key, const Node& key_node, const Node& map) {
    Entry entry;
    bool good = true;
    for (const auto& [name, item] : map.entries) {
      const std::string problem = key.check(name.text);
      if (!problem.empty()) {
        findings_.Error(name.at, "value", "{}: \"{}\" {}", key.path, name.text, problem);
      }
      std::optional<Text> text = ReadItem(key, item, name.text);
      if (text && key.type == Type::kSelectorMap && !ReadSelector(key, *text)) text.reset();
      good = good && text && problem.empty();
      if (!text) continue;
      text->name_at = name.at;
      entry.texts.push_back(std::move(*text));
    }
    const bool filled = key.type == Type::kSelectorMap || key.required;
    if (map.entries.empty() && filled && !key.may_be_empty) {
      findings_.Error(key_node.at, "value", "{} is empty", key.path);
    } else {
      entry.complete = good;
      values_.entries_[key.path] = std::move(entry);
    }
  }

  // One text of a list, which may be several: a:1, b:2.
  bool ReadByCommas(const Key& key, const Node& item, std::vector<Text>& texts) {
    const std::optional<Text> whole = Expanded(key, item, Lines::kMany);
    if (!whole) return false;
    bool good = true;
    for (const std::string_view part : SplitAtCommas(whole->value)) {
      Text text = *whole;
      text.value = part;
      const bool as_written = whole->value == whole->written;
      if (as_written) text.shown = fmt::format("\"{}\"", Redacted(key.check, text.value));
      if (part.empty() && !whole->value.empty()) {
        Tell(key, *whole, "value", "has an empty element between its commas");
        return false;
      }
      const bool fits = Fits(key, text);
      if (fits) texts.push_back(std::move(text));
      good = good && fits;
    }
    return good;
  }

  std::optional<Text> ReadItem(const Key& key, const Node& item, const std::string& name = "") {
    if (item.kind == Node::Kind::kScalar) return ReadText(key, item, name);
    if (const auto pair = key.pairs ? PairOf(item) : std::nullopt)
      return ReadText(key, *pair, name);
    findings_.Error(item.at, "type", "{} needs single values, here is {}", Join(key.path, name),
                    KindText(item.kind));
    return std::nullopt;
  }

  // Replaces ${…}, and checks the form where the key has one for its texts.
  std::optional<Text> ReadText(const Key& key, const Node& node, const std::string& name = "") {
    std::optional<Text> text = Expanded(key, node, key.lines ? Lines::kMany : Lines::kOne, name);
    if (text && KindFor(key.type) != Node::Kind::kMap && !Fits(key, *text)) text.reset();
    return text;
  }

  bool Fits(const Key& key, const Text& text) {
    const std::string problem = key.check == nullptr ? "" : key.check(text.value);
    if (!problem.empty()) Tell(key, text, "value", problem);
    return problem.empty();
  }

  std::optional<Text> Expanded(const Key& key, const Node& node, Lines lines,
                               const std::string& name = "") {
    Text text;
    text.name = name;
    text.at = node.at;
    text.written = node.text;
    if (!key.secret) text.shown = fmt::format("\"{}\"", Redacted(key.check, node.text));
    Environment here = environment_;
    if (here.may_stand_in && !here.may_stand_in(key.path)) here.stand_in = nullptr;
    auto value = Expand(node.text, here, lines);
    if (!value) {
      findings_.Error(node.at, value.error().rule, "{}: {}", Join(key.path, name),
                      value.error().text);
      return std::nullopt;
    }
    text.value = std::move(*value);
    if (text.value.find('\0') != std::string::npos) {
      findings_.Error(node.at, "value", "{}: the value holds a NUL byte", key.path);
      return std::nullopt;
    }
    return text;
  }

  bool ReadSelector(const Key& key, Text& text) {
    if (!key.or_word.empty() && text.value == key.or_word) return true;
    auto selector = consumer::Selector::Parse(text.value);
    if (!selector) {
      const std::string path = Join(key.path, text.name);
      const bool id = key.path == "record_id";
      // Nothing of a variable's value is shown.
      const bool as_written = text.shown == fmt::format("\"{}\"", text.value);
      const std::string meant = as_written ? consumer::LikelySelector(text.value) : "";
      std::string why = selector.error();
      if (!meant.empty() && consumer::Selector::Parse(meant)) {
        why = fmt::format("not a selector; did you mean {}?{} {}", meant,
                          id ? "" : fmt::format(" Or \"={}\", for that text?", text.value),
                          id ? kIdForms : consumer::kSelectorForms);
      }
      findings_.Error(text.at, "selector", "{}: {}: {}", path, text.shown, why);
      return false;
    }
    const bool effect = ParentOf(key.path).ends_with(".effects");
    const bool table = effect || ParentOf(key.path) == "output.postgres" ||
                       ParentOf(key.path) == "output.mysql" ||
                       ParentOf(key.path) == "output.sqlite";
    if (selector->OfElement() && !effect && !ParentOf(key.path).ends_with(".effects.table")) {
      findings_.Error(text.at, "selector",
                      "{}: {}: index and record./POINTER are for the rows of an effect with each; "
                      "of the whole value take json:/POINTER",
                      Join(key.path, text.name), text.shown);
      return false;
    }
    if (selector->omits && (NameOf(key.path) != "columns" || !table)) {
      findings_.Error(text.at, "selector",
                      "{}: {}: ?default leaves a column to its table, and this is no column of "
                      "one; ? gives null",
                      Join(key.path, text.name), text.shown);
      return false;
    }
    text.selector = std::move(*selector);
    return true;
  }

  bool ChoiceIsGood(const Key& key, const Text& text) {
    if (std::ranges::find(key.choices, text.value) == key.choices.end()) {
      std::string problem = fmt::format("is none of {}", ChoicesText(key));
      if (const auto near = Nearest(text.value, key.choices)) {
        problem += fmt::format("; did you mean {}?", *near);
      }
      Tell(key, text, "value", problem);
      return false;
    }
    return true;
  }

  bool InRange(const Key& key, const Text& text, std::int64_t number) {
    if (!key.limits) return true;
    const auto [min, max] = *key.limits;
    if (number < KnownNumber(key, min)) {
      Tell(key, text, "range", fmt::format("is less than the least, {}", min));
      return false;
    }
    if (number > KnownNumber(key, max)) {
      Tell(key, text, "range", fmt::format("is more than the most, {}", max));
      return false;
    }
    return true;
  }

  void Tell(const Key& key, const Text& text, std::string_view rule, std::string_view predicate) {
    findings_.Error(text.at, rule, "{}: {} {}", Join(key.path, text.name),
                    text.shown.empty() ? "the value" : text.shown, predicate);
  }

  const Environment& environment_;
  Findings& findings_;
  Values values_;
  bool in_a_list_ = false;  // what is read is a section of one
};

std::int64_t Values::Number(std::string_view path) const {
  if (const Entry* entry = Find(path)) return entry->number;
  const Key* key = FindKey(path);
  FENCEPOST_CHECK(key != nullptr && IsNumber(key->type), path);
  return key->default_value.empty() ? 0 : KnownNumber(*key, key->default_value);
}

Values ReadTree(const Node& root, const Environment& environment, Findings& findings) {
  return Reader(environment, findings).Read(root);
}

Values ReadSectionOf(std::string_view list, const Node& map, const Environment& environment,
                     Findings& findings) {
  return Reader(environment, findings).ReadOne(list, map);
}

Node::Kind KindFor(Type type) {
  switch (type) {
    case Type::kSection:
    case Type::kTextMap:
    case Type::kSelectorMap:
      return Node::Kind::kMap;
    case Type::kTexts:
    case Type::kSelectors:
    case Type::kSections:
    case Type::kRows:
      return Node::Kind::kList;
    default:
      return Node::Kind::kScalar;
  }
}

std::string_view KindText(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "something else";
}

}  // namespace fencepost::config
