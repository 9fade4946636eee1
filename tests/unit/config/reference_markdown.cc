#include "tests/unit/config/reference_markdown.h"

#include <vector>

#include <fmt/format.h>

#include "config/schema/schema.h"
#include "config/text/finding.h"
#include "consumer/kafka/client/refused_settings.h"

namespace fencepost::config {
namespace {

constexpr std::string_view kIntroduction = R"(# Pipeline file: reference
Made from the schema (`config/schema/`) by `ReferenceMarkdown()`; a test holds this file equal to
it.

- Strict YAML: unknown keys, duplicate keys, anchors, aliases and tags are errors. One document,
  UTF-8.
- Durations: `250ms`, `10s`, `5m`, `24h`, `7d`. Sizes: `512B`, `64KiB`, `10MiB`, `1GiB`. Whole
  numbers.
- `${VAR}`, `${VAR:-default}` (where VAR is unset or empty; a default has no `}`) and
  `${file:/run/secrets/x}` (without the line ends at its end; a relative path starts at the
  working directory) are replaced after parsing, in values only. `$${` is a literal `${`. A
  missing variable or file is an error.
- Inside `{}` and `[]` YAML needs values with `?`, `{` or `}` quoted: `{password: "${X}"}`.
- Values of keys marked *secret* are never printed.

## Selectors
`key`, `value`, `topic`, `partition`, `offset`, `timestamp`, `record_id`, `token`, `worker`,
`header:NAME`, `json:/POINTER`, `key:/POINTER` and `"=text"` (a constant). One that finds nothing
makes the record bad, unless it ends in `?`: then it is null. Numbers keep their digits, JSON
strings come unescaped, objects and arrays as JSON text, JSON null is null. Of several headers of
one name the last counts, of several equal names in a JSON object the first. `timestamp` is in
milliseconds since 1970. `json:` is the whole value; `key:/POINTER` reads the key as JSON.
`record_id` takes `position`, or one or several of `key`, `header:NAME`, `json:/POINTER`,
`key:/POINTER`; of several, the id is their texts joined by `/`, with `~` and `/` inside
them as `~0` and `~1`.
)";

std::string TypeText(const Key& key) {
  switch (key.type) {
    case Type::kSection:
      return "section";
    case Type::kText:
      return "text";
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
    case Type::kTextLists:
      return "list of lists of texts";
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
      return "map of selectors";
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
  return TypeText(key) + (key.or_selectors ? ", or a list of selectors" : "");
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
  return text;
}

std::string Keys() {
  std::string out = "\n## Keys\nA required key is needed where its section is given.\n";
  std::string_view heading = "-";
  for (const Key& key : Schema()) {
    const std::string_view dot = std::string_view(key.path).substr(0, key.path.find('.'));
    const bool section_of_its_own = key.type == Type::kSection || key.type == Type::kSections;
    const bool top = dot == key.path && !section_of_its_own;
    const std::string_view section = top ? std::string_view() : dot;
    if (section != heading) {
      heading = section;
      out += fmt::format("\n### {}\n", section.empty() ? "At the top" : section);
      out += "| key | value | default | meaning |\n|---|---|---|---|\n";
    }
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.path, TypesText(key), DefaultText(key),
                       DescriptionText(key));
  }
  return out;
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
```

- A map or a list given as key, value or body is its JSON in the file's order: what is not quoted
  and looks like a number, `true`, `false` or `null` is that and keeps its digits, everything else
  is a string. A single value is its text.
- The cells of `rows` are called as the columns are: `output.postgres`, `sqlite`, `file`, `stdout`:
  the names in `columns`; a `statement`: `$1`, `$2`, …; `output.kafka`: `key`, `value`,
  `header:NAME`; JSON lines without `columns`: the names in the line. A cell is compared as text.
- Stages of a record: `lock` (its lease is granted), `handler` (it was answered), `output` (its row
  is written), `commit` (its offset is committed).
)";

std::string Refused() {
  std::string out = "\n## Settings that kafka.librdkafka refuses\n| setting | why |\n|---|---|\n";
  std::string_view last;
  for (const consumer::RefusedSetting& setting : consumer::RefusedSettings()) {
    if (setting.name == last) continue;
    last = setting.name;
    const std::string_view where =
        setting.only_with.empty() ? "" : " (where that section is given)";
    out += fmt::format("| `{}` | {}{} |\n", setting.name, setting.why, where);
  }
  return out;
}

std::string RuleTable() {
  std::string out =
      "\n## Rules\nThe names at the end of findings.\n\n| rule | what it holds |\n|---|---|\n";
  for (const Rule& rule : Rules()) out += fmt::format("| `{}` | {} |\n", rule.name, rule.meaning);
  return out;
}

}  // namespace

std::string ReferenceMarkdown() {
  return std::string(kIntroduction) + Keys() + std::string(kTests) + Refused() + RuleTable();
}

}  // namespace fencepost::config
