#include "config/read/tests_reader.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/text/suggestion.h"
#include "consumer/json/json_text.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/pipeline/read_topics.h"

namespace fencepost::config {
namespace {

using consumer::ExpectedDeadLetter;
using consumer::ExpectedRow;
using consumer::GivenRecord;
using consumer::HttpStub;
using consumer::LifeStage;
using consumer::PipelineTest;
using consumer::TestFaults;
using Cells = std::vector<std::pair<std::string, std::optional<std::string>>>;

constexpr std::array<std::string_view, 9> kDeadLetterFields{"error",    "error_class", "record_id",
                                                            "topic",    "partition",   "offset",
                                                            "attempts", "key",         "value"};

// What is given at the key; else what `to` holds already.
template <typename T>
void Take(const Values& values, std::string_view path, T& to) {
  if (const Given* given = values.Find(path)) Store(*given, to);
}

template <typename T>
void Take(const Values& values, std::string_view path, std::optional<T>& to) {
  if (values.Find(path) != nullptr) Take(values, path, to.emplace());
}

std::optional<LifeStage> Stage(const Values& values, std::string_view path) {
  if (values.Find(path) == nullptr) return std::nullopt;
  const auto stages = FindKey(path)->choices;
  return static_cast<LifeStage>(std::ranges::find(stages, values.String(path)) - stages.begin());
}

constexpr const char* kAnyHeader = "header:NAME";

// What the cells of an expected row are called, or nothing where any name may be one.
std::vector<std::string> CellNames(const Values& pipeline) {
  std::vector<std::string> names;
  for (const Key& key : Schema()) {
    if (!key.path.starts_with("output.")) continue;
    for (const Values& effect : pipeline.Sections(key.path)) {
      for (const std::string& name : CellNames(effect)) names.push_back(name);
    }
    if (NameOf(key.path) == "columns") {
      for (const Text& column : pipeline.Texts(key.path)) names.push_back(column.name);
    } else if (NameOf(key.path) == "fence_column" && pipeline.Find(key.path) != nullptr) {
      names.push_back(pipeline.String(key.path));
    }
  }
  for (const char* path : {"output.postgres.args", "output.postgres.effects.args"}) {
    const std::size_t args = pipeline.Texts(path).size();
    for (std::size_t i = 1; i <= args; ++i) names.push_back(fmt::format("${}", i));
  }
  if (pipeline.Given("output.kafka")) {
    names.insert(names.end(), {"key", "value", kAnyHeader});
  }
  return names;
}

// Whose rows an output with `effects` or `records` has, as tests name them: tables without what
// stands before them, statements by their place, topics.
std::vector<std::string> Targets(const Values& pipeline, std::string_view list) {
  std::vector<std::string> names;
  for (const Key& key : Schema()) {
    if (key.type != Type::kSections || NameOf(key.path) != list) continue;
    int place = 0;
    for (const Values& section : pipeline.Sections(key.path)) {
      ++place;
      if (section.Given(key.path + ".statement"))
        names.push_back(fmt::format("statement {}", place));
      const std::string path = key.path + (list == "effects" ? ".table" : ".topic");
      for (const std::string_view of : {"", ".of", ".otherwise"}) {
        for (const Text& text : section.Texts(fmt::format("{}{}", path, of))) {
          const bool word = text.value == "bad" || text.value == "skip";
          if (word && of == ".otherwise") continue;
          const auto parts = consumer::SplitTableName(text.value);
          names.push_back(list == "effects" && parts ? parts->back() : text.value);
        }
      }
    }
  }
  return names;
}

class TestsReader {
 public:
  TestsReader(const Values& pipeline, const Environment& environment, Findings& findings)
      : pipeline_(pipeline),
        environment_(environment),
        findings_(findings),
        topics_(pipeline.Strings("kafka.topics")),
        cells_(CellNames(pipeline)),
        several_(pipeline.Given("output.postgres.effects") ? "effects"
                 : pipeline.Given("output.mysql.effects")  ? "effects"
                 : pipeline.Given("output.sqlite.effects") ? "effects"
                 : pipeline.Given("output.kafka.records")  ? "records"
                                                           : ""),
        targets_(several_.empty() ? std::vector<std::string>() : Targets(pipeline, several_)) {}

  std::vector<PipelineTest> Read() {
    std::vector<PipelineTest> tests;
    const Entry* entry = pipeline_.Find("tests");
    if (entry == nullptr) return tests;
    std::set<std::string> names;
    for (const Node& node : entry->node->items) {
      const Values values = Section("tests", node);
      tests.push_back(ReadTest(values, node.at));
      const std::string& name = tests.back().name;
      if (!name.empty() && !names.insert(name).second) {
        Error(values.ValuePlace("tests.name"), "tests: the name {} is given twice",
              Shown(values, "tests.name"));
      }
    }
    return tests;
  }

 private:
  template <typename... Parts>
  void Error(Place at, fmt::format_string<Parts...> message, Parts&&... parts) {
    findings_.Error(at, "tests", fmt::format(message, std::forward<Parts>(parts)...));
  }
  Values Section(std::string_view list, const Node& node) {
    return ReadSectionOf(list, node, environment_, findings_);
  }

  PipelineTest ReadTest(const Values& values, Place at) {
    PipelineTest test;
    Take(values, "tests.name", test.name);
    test.file = findings_.SourceOf(at);
    test.line = at.line;
    if (const Entry* given = values.Find("tests.given")) {
      for (const Node& node : given->node->items) test.given.push_back(ReadGiven(node));
    }
    if (const Entry* stubs = values.Find("tests.http")) {
      for (const Node& node : stubs->node->items) test.http.push_back(ReadStub(node));
    }
    if (values.Given("tests.http") && !pipeline_.Given("handler.http")) {
      Error(values.KeyPlace("tests.http"),
            "tests.http: the pipeline has no handler.http to answer");
    }
    test.faults = ReadFaults(values);
    ReadExpected(values, test);
    return test;
  }

  GivenRecord ReadGiven(const Node& node) {
    const Values values = Section("tests.given", node);
    GivenRecord record;
    record.line = node.at.line;
    record.topic = values.String("tests.given.topic");
    const bool given = values.Given("tests.given.topic");
    if (!given && !topics_.names().empty()) record.topic = topics_.names().front();
    if (!given && record.topic.empty() && !topics_.pattern().empty()) {
      Error(node.at, "tests.given: give the record's topic: kafka.topics has none by name");
    } else if (given && !record.topic.empty() && pipeline_.Find("kafka.topics") != nullptr &&
               !topics_.Has(record.topic)) {
      Error(values.ValuePlace("tests.given.topic"), "tests.given.topic: {} is none of kafka.topics",
            Shown(values, "tests.given.topic"));
    }
    Take(values, "tests.given.partition", record.partition);
    record.key = Any(values, "tests.given.key");
    record.value = Any(values, "tests.given.value");
    Take(values, "tests.given.headers", record.headers);
    Take(values, "tests.given.timestamp", record.timestamp);
    return record;
  }

  HttpStub ReadStub(const Node& node) {
    const Values values = Section("tests.http", node);
    HttpStub stub;
    stub.line = node.at.line;
    Take(values, "tests.http.record_id", stub.record_id);
    Take(values, "tests.http.status", stub.status);
    stub.body = Any(values, "tests.http.body").value_or("");
    Take(values, "tests.http.headers", stub.headers);
    Take(values, "tests.http.timeout", stub.timeout);
    Take(values, "tests.http.batch", stub.batch);
    Take(values, "tests.http.times", stub.times);
    if (values.Given("tests.http.batch") && !pipeline_.Given("handler.http.batch")) {
      Error(values.KeyPlace("tests.http.batch"), "tests.http.batch: handler.http has no batch");
    }
    for (const std::string_view answer :
         {"tests.http.status", "tests.http.body", "tests.http.headers"}) {
      if (!stub.timeout || !values.Given(answer)) continue;
      Error(values.KeyPlace(answer),
            "{}: a service that does not answer has none: leave it out, or timeout", answer);
    }
    return stub;
  }

  TestFaults ReadFaults(const Values& values) {
    TestFaults faults;
    faults.kill_worker_after = Stage(values, "tests.faults.kill_worker_after");
    faults.lease_lost_during = Stage(values, "tests.faults.lease_lost_during");
    Take(values, "tests.faults.redis_nodes_down", faults.redis_nodes_down);
    Take(values, "tests.faults.duplicate", faults.duplicate);
    const int nodes = static_cast<int>(pipeline_.Texts("lock.redis.nodes").size());
    if (nodes > 0 && faults.redis_nodes_down > nodes) {
      Error(values.ValuePlace("tests.faults.redis_nodes_down"),
            "tests.faults.redis_nodes_down: {} of {} nodes cannot be down", faults.redis_nodes_down,
            nodes);
    }
    for (const std::string_view path :
         {"tests.faults.kill_worker_after", "tests.faults.lease_lost_during"}) {
      if (Stage(values, path) != LifeStage::kHandler || pipeline_.Given("handler")) continue;
      Error(values.ValuePlace(path), "{}: the pipeline has no handler", path);
    }
    return faults;
  }

  void ReadExpected(const Values& values, PipelineTest& test) {
    if (const Entry* rows = values.Find("tests.expect.rows")) {
      ReadRows(*rows->node, test.rows.emplace());
    }
    Take(values, "tests.expect.rows_in_order", test.rows_in_order);
    if (test.rows_in_order && !values.Given("tests.expect.rows")) {
      Error(values.KeyPlace("tests.expect.rows_in_order"),
            "tests.expect.rows_in_order: there are no rows");
    }
    ReadDeadLetters(values, test);
    Take(values, "tests.expect.skips", test.skips);
    Take(values, "tests.expect.filtered", test.filtered);
    Take(values, "tests.expect.handler_calls", test.handler_calls);
    Take(values, "tests.expect.stops_with", test.stops_with);
    const auto expects = [&](std::string_view name) {
      return values.Given(fmt::format("tests.expect.{}", name));
    };
    const auto names = ChildrenOf("tests.expect");
    if (values.Given("tests.expect") && std::none_of(names.begin(), names.end(), expects)) {
      Error(values.KeyPlace("tests.expect"), "tests.expect is empty: a test that cannot fail");
    }
  }

  void ReadDeadLetters(const Values& values, PipelineTest& test) {
    const Entry* letters = values.Find("tests.expect.dead_letters");
    if (letters == nullptr) return;
    test.dead_letters.emplace();
    for (const Node& node : letters->node->items) {
      ExpectedDeadLetter letter{.fields = {}, .line = node.at.line};
      for (auto& [name, value] : ReadCells("tests.expect.dead_letters", node)) {
        letter.fields.emplace_back(std::move(name), std::move(value).value_or(""));
      }
      test.dead_letters->push_back(std::move(letter));
    }
    if (!letters->node->items.empty() && !pipeline_.Given("dead_letter")) {
      Error(values.KeyPlace("tests.expect.dead_letters"),
            "tests.expect.dead_letters: the pipeline has no dead_letter section");
    }
  }

  void ReadRows(const Node& rows, std::vector<ExpectedRow>& to) {
    const bool by_table = rows.kind == Node::Kind::kMap;
    const bool several = !several_.empty();
    if (by_table != several && !(several && rows.items.empty())) {
      const bool tables = several_ == "effects";
      Error(rows.at, "tests.expect.rows: {}",
            several
                ? fmt::format("the output has {}: give a map, as in rows: {{{}: [{{{}: TEXT}}]}}",
                              several_, tables ? "TABLE" : "TOPIC", tables ? "COLUMN" : "key")
                : "the output has one table: give a list, as in rows: [{COLUMN: TEXT}]");
      return;
    }
    for (const Node& row : rows.items) ReadRow(row, "", to);
    for (const auto& [table, list] : rows.entries) {
      CheckName("tests.expect.rows", table, targets_);
      if (list.kind != Node::Kind::kList) {
        findings_.Error(list.at, "type", "tests.expect.rows.{} needs a list, here is {}",
                        table.text, KindText(list.kind));
      }
      for (const Node& row : list.items) ReadRow(row, table.text, to);
    }
  }

  void ReadRow(const Node& node, const std::string& table, std::vector<ExpectedRow>& to) {
    ExpectedRow& row = to.emplace_back(
        ExpectedRow{.cells = ReadCells("tests.expect.rows", node), .line = node.at.line});
    for (const auto& [name, value] : node.entries) {
      if (value.plain && consumer::IsJsonNumber(value.text)) row.numbers.push_back(name.text);
    }
    if (!table.empty()) row.cells.emplace_back(consumer::kTableCell, table);
  }

  Cells ReadCells(std::string_view path, const Node& row) {
    Cells cells;
    if (row.kind != Node::Kind::kMap) {
      findings_.Error(row.at, "type", "{} needs maps, here is {}", path, KindText(row.kind));
      return cells;
    }
    const bool letters = path == "tests.expect.dead_letters";
    for (const auto& [name, value] : row.entries) {
      const bool header = std::ranges::find(cells_, kAnyHeader) != cells_.end() &&
                          name.text.starts_with(consumer::kHeaderCell) &&
                          name.text.size() > consumer::kHeaderCell.size();
      if (letters) {
        CheckName(path, name, kDeadLetterFields);
      } else if (!header) {
        CheckName(path, name, cells_);
      }
      if (letters && value.kind == Node::Kind::kNull) {
        findings_.Error(name.at, "type", "{}.{} has no value", path, name.text);
      }
      cells.emplace_back(name.text, Any(fmt::format("{}.{}", path, name.text), value));
    }
    return cells;
  }

  template <typename Names>
  void CheckName(std::string_view path, const Node& name, const Names& known) {
    if (known.empty() || std::find(known.begin(), known.end(), name.text) != known.end()) return;
    std::string message =
        fmt::format("{}: \"{}\" is none of {}", path, name.text, fmt::join(known, ", "));
    if (const auto near = Nearest(name.text, known)) {
      message += fmt::format("; did you mean \"{}\"?", *near);
    }
    Error(name.at, "{}", message);
  }

  std::optional<std::string> Any(const Values& values, std::string_view path) {
    const Entry* entry = values.Find(path);
    if (entry == nullptr) return std::nullopt;
    return Any(path, *entry->node);
  }
  // A text as it is; a map or a list as its JSON.
  std::optional<std::string> Any(std::string_view path, const Node& node) {
    if (node.kind == Node::Kind::kNull) return std::nullopt;
    return node.kind == Node::Kind::kScalar ? Scalar(path, node) : Json(path, node);
  }
  // ${…} is replaced in values, never in keys.
  std::string Scalar(std::string_view path, const Node& node) {
    auto text = Expand(node.text, environment_, Lines::kMany);
    if (!text) findings_.Error(node.at, "variable", "{}: {}", path, text.error().text);
    return std::move(text).value_or("");
  }
  // RFC 8259, in the file's order. What is not quoted and looks like a number, true, false or null
  // is that, and keeps its digits; everything else is a string.
  std::string Json(std::string_view path, const Node& node) {
    const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
    std::vector<std::string> parts;
    switch (node.kind) {
      case Node::Kind::kNull:
        return "null";
      case Node::Kind::kMap:
        for (const auto& [key, value] : node.entries) {
          parts.push_back(quoted(key.text) + ":" + Json(path, value));
        }
        return fmt::format("{{{}}}", fmt::join(parts, ","));
      case Node::Kind::kList:
        for (const Node& item : node.items) parts.push_back(Json(path, item));
        return fmt::format("[{}]", fmt::join(parts, ","));
      case Node::Kind::kScalar:
        break;
    }
    const std::string text = Scalar(path, node);
    const bool literal =
        node.plain && (text == "true" || text == "false" || consumer::IsJsonNumber(text));
    return literal ? text : quoted(text);
  }

  const Values& pipeline_;
  const Environment& environment_;
  Findings& findings_;
  const consumer::ReadTopics topics_;
  std::vector<std::string> cells_;
  const std::string_view several_;  // the key whose rows are told by table or topic; else empty
  const std::vector<std::string> targets_;  // of its rows
};

}  // namespace

std::vector<PipelineTest> ReadTests(const Values& pipeline, const Environment& environment,
                                    Findings& findings) {
  return TestsReader(pipeline, environment, findings).Read();
}

}  // namespace fencepost::config
