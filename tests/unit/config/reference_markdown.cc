#include "tests/unit/config/reference_markdown.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/schema/schema.h"
#include "config/text/finding.h"
#include "consumer/kafka/client/settings.h"

namespace fencepost::config {
namespace {

constexpr std::string_view kIntroduction = R"(# Pipeline file: reference
Made from the schema (`config/schema/`); a test holds this file equal to it. First the keys that a
first pipeline needs, then the others by section. What each setting switches on: [MODES](MODES.md).

- Strict YAML: unknown keys, duplicate keys, anchors, aliases and tags are errors. One document,
  UTF-8. Inside `{}` and `[]`, quote values with `?`, `{` or `}`: `{password: "${X}"}`.
- Durations: `250ms`, `10s`, `5m`, `24h`, `7d`. Sizes: `512B`, `64KiB`, `10MiB`, `1GiB`.
- `${VAR}`, `${VAR:-default}` and `${file:/run/secrets/x}` (without byte order mark and line ends
  at its end) are replaced in values, after parsing; `$${` is a literal `${`. Refused: what is
  missing; but in programs and schemas line breaks, and blanks at the ends (one that is meant
  follows here: `"${VAR} "`).
- Lists of brokers, topics, nodes and statuses may be one text with commas: `brokers: ${BROKERS}`.
- Values of keys marked *Secret* are never printed. Keys marked *Reloaded* are applied at SIGHUP
  (`processing.concurrency` with `handler.http` only), the others need a restart.

## Selectors
`key`, `value`, `topic`, `partition`, `offset`, `timestamp` (milliseconds since 1970),
`record_id`, `token`, `worker`, `header:NAME` (the last of that name), `json:/POINTER`,
`key:/POINTER` (the key read as JSON) and `"=text"` (a constant). `json:` is the whole value. A
selector that finds nothing makes the record bad; one that ends in `?` gives null. What is read as
JSON and is [not exactly one document](../consumer/json/README.md#what-is-json) is bad, too. Numbers
keep their digits (123, 123.0 and 1.23e2 are three ids, 123 and "123" are one), strings come
unescaped, objects and arrays as JSON text. An id of several selectors is their texts joined by `/`,
with `~` and `/` inside them as `~0` and `~1`. `record_id` is the id itself; ledger, lock nodes and
handlers have `sha256:HEX` of one over 512 bytes, not in UTF-8, or with control characters.

## Filter
`when` is evaluated on the decoded record, before its id. Texts are compared as selectors give them,
numbers by their digits; what is missing or null does not match. A key or value that is read as JSON
and is none makes the record bad, and so does an error of the program. A replayed dead letter is
filtered like any record. The ledger holds nothing of filtered records: after another `when`, an
offset that is moved back processes them. By position the ranges of a partition cover them; then
`fencepost forget` comes first, and `ledger_behind_the_group` is not told.

## The keys of a first pipeline
```yaml
version: 1
name: orders
kafka: {brokers: [kafka:9092], topics: [orders]}
record_id: json:/order_id
lock: {redis: {nodes: [redis-a:6379, redis-b:6379, redis-c:6379]}}
handler: {http: {url: "https://risk.example/score", idempotent: true}}
dead_letter: {topic: orders.dead}
output:
  postgres:
    dsn: postgresql://app@db/shop
    table: effects
    columns: {order_id: json:/order_id, score: json:/score}
ledger: {keep: 30d}
observe: {http: 0.0.0.0:9464}
```

)";

std::string TypeText(const Key& key) {
  switch (key.type) {
    case Type::kSection:
      return "section";
    case Type::kText:
      return "text";
    case Type::kSecret:
      return "text, or `{file: PATH}`";
    case Type::kInteger:
    case Type::kDecimal:
      return "number";
    case Type::kBoolean:
      return "true, false";
    case Type::kDuration:
      return key.or_word.empty() ? "duration" : fmt::format("duration, or `{}`", key.or_word);
    case Type::kSize:
      return "size";
    case Type::kSelector:
      return "selector";
    case Type::kTexts:
      return "list of texts";
    case Type::kSelectors:
      return "list of selectors";
    case Type::kSections:
      return "list of sections";
    case Type::kAny:
      return "text, map or list";
    case Type::kRows:
      return "list of maps";
    case Type::kTextMap:
      return "map of texts";
    case Type::kSelectorMap:
      return key.or_word.empty() ? "map of selectors"
                                 : fmt::format("map of selectors, or `{}`", key.or_word);
    case Type::kChoice:
      break;
  }
  std::string choices;
  for (const std::string_view choice : key.choices) {
    choices += fmt::format("{}`{}`", choices.empty() ? "" : ", ", choice);
  }
  return choices;
}

std::string TypesText(const Key& key) {
  return TypeText(key) + (key.or_selectors ? ", or a list of selectors"
                          : key.or_texts   ? ", or a list of texts"
                          : key.or_section ? ", or one of its keys"
                                           : "");
}

std::string DefaultText(const Key& key) {
  if (key.required) return "**required**";
  if (!key.default_words.empty()) return std::string(key.default_words);
  return key.default_value.empty() ? "" : fmt::format("`{}`", key.default_value);
}

std::string DescriptionText(const Key& key) {
  std::string text(key.help);
  if (key.limits) text += fmt::format(" From `{}` to `{}`.", key.limits->min, key.limits->max);
  if (key.secret) text += " *Secret.*";
  if (key.reload != Reload::kRestart) text += " *Reloaded.*";
  return text;
}

constexpr std::string_view kHead = "| key | value | default | meaning |\n|---|---|---|---|\n";

std::string Row(const Key& key) {
  return fmt::format("| `{}` | {} | {} | {} |\n", key.path, TypesText(key), DefaultText(key),
                     DescriptionText(key));
}

std::string BasicKeys() {
  std::string out(kHead);
  for (const Key& key : Schema()) {
    if (key.basic && key.same_as.empty()) out += Row(key);
  }
  return out;
}

// Of each section that repeats another: its keys once, by name.
std::string Repeated(std::string_view heading) {
  std::string out;
  std::string_view section;
  for (const Key& key : Schema()) {
    if (key.same_as.empty() || !key.path.starts_with(heading)) continue;
    const bool more = ParentOf(key.path) == section;
    section = ParentOf(key.path);
    out += more ? ", "
                : fmt::format("{}\nLike `{}`, `{}` has ", out.empty() ? "" : ".",
                              ParentOf(key.same_as), section);
    out += fmt::format("`{}`", NameOf(key.path));
  }
  return out.empty() ? out : out + ".\n";
}

std::string Keys() {
  std::string out = "\n## All other keys\nA required key is needed where its section is given.\n";
  std::string_view heading = "-";
  for (const Key& key : Schema()) {
    if (key.basic || !key.same_as.empty()) continue;
    const std::string_view dot = std::string_view(key.path).substr(0, key.path.find('.'));
    const bool section_of_its_own = key.type == Type::kSection || key.type == Type::kSections;
    const bool top = dot == key.path && !section_of_its_own;
    const std::string_view section = top ? std::string_view() : dot;
    if (section != heading) {
      if (!heading.empty()) out += Repeated(heading);
      heading = section;
      out += fmt::format("\n### {}\n{}", section.empty() ? "At the top" : section, kHead);
    }
    out += Row(key);
  }
  return out + Repeated(heading);
}

constexpr std::string_view kTests = R"(
## Tests
`fencepost test FILE` runs them in process, on virtual time, with no servers.

```yaml
tests:
  - name: an order is written once
    given:
      - {key: c-1, value: {order_id: o-1, amount: 12.50}}
      - {topic: orders, partition: 1, key: x, value: "raw text", headers: {h: v}}
    http: [{status: 503, times: 1}, {body: {ok: true}}, {record_id: o-2, timeout: true}]
    faults: {kill_worker_after: handler, duplicate: 2}
    expect:
      rows: [{order_id: o-1, amount: 12.50}]
      dead_letters: [{record_id: o-2, error_class: timeout}]
      skips: 2
      filtered: 0
```

- A map or a list given as key, value or body is its JSON in the file's order; unquoted numbers,
  `true`, `false` and `null` keep their type and digits. A single value is its text.
- The cells of `rows` have the names in `columns`; of a `statement` `$1`, `$2`, …; of
  `output.kafka` `key`, `value`, `header:NAME` (`null`: without a value, or none). A cell is
  compared as text.
- Retries are those of production in virtual time: a record that always fails is given up after
  `retry.give_up_after`; a service that fails for several records is waited for, and the test fails.
- Stages of a record: `lock` (its lease is granted), `handler` (it was answered), `output` (its row
  is written), `commit` (its offset is committed).
)";

// One line for each reason.
std::string Refused() {
  std::vector<std::pair<std::string, std::string>> rows;  // reason, names
  for (const consumer::RefusedSetting& setting : consumer::RefusedSettings()) {
    const std::string why =
        fmt::format("{}{}", setting.why, setting.only_with.empty() ? "" : " (where it is given)");
    const std::string name = fmt::format("`{}`", setting.name);
    auto row = std::find_if(rows.begin(), rows.end(), [&](auto& one) { return one.first == why; });
    if (row == rows.end()) row = rows.insert(row, {why, ""});
    if (row->second.find(name) != std::string::npos) continue;
    row->second += (row->second.empty() ? "" : ", ") + name;
  }
  std::string out = "\n## Settings that kafka.librdkafka refuses\n";
  for (const auto& [why, names] : rows) out += fmt::format("- {}: {}\n", names, why);
  return out;
}

std::string RuleList() {
  std::string out = "\n## Rules\nThe names at the end of findings.\n\n";
  for (const Rule& rule : Rules()) out += fmt::format("- `{}`: {}\n", rule.name, rule.meaning);
  return out;
}

}  // namespace

std::string ReferenceMarkdown() {
  return std::string(kIntroduction) + BasicKeys() + Keys() + std::string(kTests) + Refused() +
         RuleList();
}

}  // namespace fencepost::config
