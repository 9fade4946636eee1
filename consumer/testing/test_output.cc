#include "consumer/testing/test_output.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <simdjson.h>
#include <sqlite3.h>

#include "consumer/json/json_text.h"
#include "consumer/kafka/output/output_records.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/outputs/rows/row_sql.h"
#include "consumer/pipeline/pipeline_test.h"
#include "consumer/record/selector.h"
#include "consumer/testing/stand_in_table.h"
#include "consumer/worker/worker_parts.h"
#include "locking/base/temp_folder.h"

namespace fencepost::consumer {
namespace {

// --- tables ------------------------------------------------------------------------------------

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class TableOutput final : public TestOutput {
 public:
  explicit TableOutput(const PipelineOptions& options)
      : pipeline_(options.name),
        by_position_(options.identity.ByPosition()),
        by_table_(std::visit(
            [](const auto& output) {
              if constexpr (requires { output.effects; }) return !output.effects.empty();
              return false;
            },
            options.output)),
        table_(StandInFor(options.output)) {
    table_.path = folder_.path() / "effects.db";
  }

  tl::expected<void, std::string> Create() {
    if (folder_.path().empty()) {
      return tl::unexpected(std::string("no temporary folder for the test's table"));
    }
    tables_ = TablesOf(table_);
    for (Effect& effect : table_.effects) KeepDigits(effect);
    return CreateTables(table_).map([this](auto file) { database_ = std::move(file); });
  }

  std::unique_ptr<Output> Open(const std::string& worker) override {
    OutputTerms terms;
    terms.by_position = by_position_;
    terms.make_filter = MakeRecordFilter;
    return MakeSqliteOutput(table_, pipeline_, worker, std::move(terms));
  }

  std::vector<TestRow> Rows() override {
    std::vector<TestRow> rows;
    for (const StandInTable& table : tables_) AddRows(table, rows);
    return rows;
  }

 private:
  void AddRows(const StandInTable& table, std::vector<TestRow>& rows) {
    std::string columns;
    for (const Column& column : table.columns) {
      const bool fence = column.name == table.rules.fence_column;
      columns += (columns.empty() ? "" : ", ") + QuoteIdentifier(fence ? kDigits : column.name);
    }
    const std::string sql =
        "SELECT " + columns + " FROM " + QuoteIdentifier(table.name) + " ORDER BY rowid";
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &raw, nullptr);
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
    while (raw != nullptr && sqlite3_step(raw) == SQLITE_ROW) {
      TestRow& row = rows.emplace_back();
      if (by_table_) row.emplace_back(kTableCell, table.name);
      for (int i = 0; i < static_cast<int>(table.columns.size()); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw, i));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(raw, i));
        row.emplace_back(
            table.columns[static_cast<std::size_t>(i)].name,
            text == nullptr ? std::nullopt : std::optional<std::string>(std::string(text, size)));
      }
    }
  }

  // The fence compares as a number where it is one, and a number's column would make 1.5 of 1.50:
  // what is shown of it is there once more, as text, in a column beside it.
  static constexpr const char* kDigits = "the fence's digits";
  static void KeepDigits(Effect& effect) {
    const std::string& fence = effect.rules.fence_column;
    if (fence.empty()) return;
    const auto column = std::ranges::find(effect.columns, fence, &Column::name);
    if (column != effect.columns.end()) {
      effect.columns.push_back({kDigits, Selector(column->selector)});
    } else if (effect.rules.fence_by) {
      effect.columns.push_back({kDigits, *effect.rules.fence_by});
    }
  }

  const TempFolder folder_;
  const std::string pipeline_;
  const bool by_position_;
  const bool by_table_;  // a row says in which it is
  SqliteOptions table_;
  std::vector<StandInTable> tables_;  // as they are shown
  std::shared_ptr<sqlite3> database_;
};

// --- a topic -----------------------------------------------------------------------------------

class TopicOutput final : public TestOutput {
 public:
  TopicOutput(const KafkaOutputOptions& options, bool key_is_json)
      : options_(options), key_is_json_(key_is_json) {}

  class Transactions final : public Output {
   public:
    Transactions(TopicOutput& topic, std::string worker)
        : topic_(topic),
          worker_(std::move(worker)),
          records_(topic.options_, worker_, nullptr, topic.key_is_json_, OutputJq()) {}
    tl::expected<void, OutputError> Prepare() override { return {}; }
    tl::expected<std::vector<WriteOutcome>, OutputError> Write(
        const WriteRequest& request) override {
      std::vector<WriteOutcome> outcomes(OutcomesOf(request));
      std::vector<TestRow> rows;
      bool aborted = false;
      for (std::size_t i = 0; i < request.items.size(); ++i) {
        if (request.items[i].dead_letter != nullptr) continue;  // the worker's, not the topic's
        if (const auto added = Add(request.items[i], rows); !added) {
          outcomes[i] = {WriteResult::kBadRecord, added.error()};
          aborted = true;
        } else if (!*added) {
          outcomes[i] = {.result = WriteResult::kNoOutput, .took_rows = false};
        }
      }
      if (aborted) {
        for (WriteOutcome& outcome : outcomes) {
          if (outcome.result != WriteResult::kBadRecord) outcome.result = WriteResult::kNotWritten;
        }
        return outcomes;
      }
      for (TestRow& row : rows) topic_.rows_.push_back(std::move(row));
      return outcomes;
    }
    void Interrupt() override {}

   private:
    // What is taken as it is, and a schema encodes, must be JSON.
    [[nodiscard]] bool EncodesTheValue() const {
      return topic_.options_.encode.value.Needed() &&
             topic_.options_.value.kind == Selector::Kind::kValue;
    }
    tl::expected<bool, std::string> Add(const WriteItem& item, std::vector<TestRow>& rows) {
      const std::size_t before = rows.size();
      records_.Begin(item);
      for (;;) {
        const auto made = records_.Next();
        if (!made) return tl::unexpected(made.error().detail);
        if (*made == nullptr) return rows.size() > before;
        const OutgoingRecord& record = **made;
        if (EncodesTheValue() && record.value) {
          const std::string_view problem = JsonProblem(*record.value);
          if (!problem.empty()) return tl::unexpected(fmt::format("value: {}", problem));
        }
        TestRow& row = rows.emplace_back();
        const auto add = [&row](std::string_view name,
                                const std::optional<std::string_view>& bytes) {
          row.emplace_back(name, bytes ? std::optional<std::string>(*bytes) : std::nullopt);
        };
        if (!topic_.options_.records.empty()) add(kTableCell, record.topic);
        add("key", record.key);
        add("value", record.value);
        for (const HeaderView& header : record.headers) {
          add(fmt::format("{}{}", kHeaderCell, header.name), header.value);
        }
      }
    }

    TopicOutput& topic_;
    const std::string worker_;
    OutputRecords records_;
  };

  std::unique_ptr<Output> Open(const std::string& worker) override {
    return std::make_unique<Transactions>(*this, worker);
  }
  std::vector<TestRow> Rows() override { return rows_; }

 private:
  const KafkaOutputOptions options_;
  const bool key_is_json_;
  std::vector<TestRow> rows_;
};

// --- JSON lines --------------------------------------------------------------------------------

class LinesOutput final : public TestOutput {
 public:
  explicit LinesOutput(std::vector<Column> columns)
      : options_{.path = folder_.path() / "lines.json", .columns = std::move(columns)} {}

  std::unique_ptr<Output> Open(const std::string& worker) override {
    return MakeFileOutput(options_, worker);
  }

  std::vector<TestRow> Rows() override {
    std::vector<TestRow> rows;
    std::ifstream file(options_.path);
    simdjson::ondemand::parser parser;
    for (std::string line; std::getline(file, line);) {
      if (auto row = ReadLine(parser, line)) rows.push_back(std::move(*row));
    }
    return rows;
  }

 private:
  // Every value as it is in the line, so that numbers keep their digits; strings without their
  // escapes, null as SQL NULL. nullopt: not an object.
  static std::optional<TestRow> ReadLine(simdjson::ondemand::parser& parser,
                                         const std::string& line) {
    TestRow row;
    try {
      const simdjson::padded_string padded(line);
      simdjson::ondemand::document document = parser.iterate(padded);
      for (auto field : document.get_object()) {
        std::string name(std::string_view(field.unescaped_key()));
        row.emplace_back(std::move(name), Cell(field.value()));
      }
    } catch (const simdjson::simdjson_error&) {
      return std::nullopt;
    }
    return row;
  }
  static std::optional<std::string> Cell(simdjson::ondemand::value value) {
    std::string_view text;
    if (value.get_string().get(text) == simdjson::SUCCESS) return std::string(text);
    text = simdjson::to_json_string(value);
    return text == "null" ? std::nullopt : std::optional(Minified(text));
  }
  static std::string Minified(std::string_view json) {
    std::string text(json.size(), '\0');
    std::size_t size = text.size();
    if (simdjson::minify(json.data(), json.size(), text.data(), size) != simdjson::SUCCESS) {
      return std::string(json);
    }
    text.resize(size);
    return text;
  }

  const TempFolder folder_;
  const FileOptions options_;
};

}  // namespace

tl::expected<std::unique_ptr<TestOutput>, std::string> TestOutput::Make(
    const PipelineOptions& options) {
  if (const auto* kafka = std::get_if<KafkaOutputOptions>(&options.output)) {
    return std::make_unique<TopicOutput>(*kafka,
                                         DecodeOptions::IsWireFormat(options.kafka.decode.key));
  }
  if (const auto* file = std::get_if<FileOptions>(&options.output)) {
    return std::make_unique<LinesOutput>(file->columns);
  }
  if (const auto* lines = std::get_if<StdoutOptions>(&options.output)) {
    return std::make_unique<LinesOutput>(lines->columns);
  }
  auto table = std::make_unique<TableOutput>(options);
  if (auto created = table->Create(); !created) return tl::unexpected(created.error());
  return table;
}

}  // namespace fencepost::consumer
