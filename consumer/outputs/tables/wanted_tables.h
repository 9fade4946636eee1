// The tables of effects that an output asks for, and what is known of their columns: by the
// pipeline file, by samples of the topic, by the selectors. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/json/json_reader.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/record_filter.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

enum class Dialect : std::uint8_t { kPostgres, kMysql, kSqlite };
// nullopt: the output has no tables.
std::optional<Dialect> DialectOf(const OutputOptions& output);

// What the values of a column are.
enum class ValueKind : std::uint8_t {
  kText,
  kWhole,      // of 64 bits
  kLongWhole,  // of more
  kDecimal,
  kBoolean,
  kDate,
  kMoment,  // a date with a time
  kJson,    // objects and arrays
  kBytes,
};
// By what: the first of these that says it.
enum class KnownBy : std::uint8_t { kTypes, kConvert, kSchema, kSamples, kSelector, kNothing };

// Of a column: what they have in common, and the first MiB of them.
class SampledValues {
 public:
  struct Value {
    std::optional<JsonType> type;  // in JSON; nullopt: bytes
    std::string text;
  };
  void Add(std::optional<JsonType> type, std::string_view text);
  [[nodiscard]] std::optional<ValueKind> Kind() const;  // nullopt: there are none
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<Value>& kept() const { return kept_; }

 private:
  std::set<ValueKind> seen_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;  // of those that are kept
  std::vector<Value> kept_;
};

struct WantedColumn {
  std::string type{};  // SQL, of `types`; empty: one for `kind`
  ValueKind kind = ValueKind::kText;
  KnownBy by = KnownBy::kNothing;
  SampledValues sampled{};
};

struct WantedTable {
  std::string name;    // as the file has it
  std::string output;  // its section in the file: output.postgres, or output.postgres.effects
  RowShape shape;
  Effect effect;
  std::vector<WantedColumn> columns;  // in the order of the shape's
  bool sampled = false;               // records were read for it, if there were any
};

// Unless something tells it already. A fence stays a number where it would be a text: as one, 9
// would be above 10, and what is newer would be left out in silence.
void Learn(WantedTable& table, std::size_t column, ValueKind kind, KnownBy by);

// Those of all effects, in their order: statements have none of their own, and what chooses a table
// has several. `output`: its section in the file.
std::vector<WantedTable> WantedTables(const EffectShapes& effects, std::string_view output);
// None: an output without tables, or with statements alone. Error: the rules for rows contradict
// each other.
tl::expected<std::vector<WantedTable>, RowProblem> WantedTables(const OutputOptions& output);

// Reads records by the columns of wanted tables. One thread.
class Sampler {
 public:
  // `make_filter`: for `when` of effects.
  Sampler(std::vector<WantedTable>& tables, const decltype(OutputTerms::make_filter)& make_filter);
  // `value_known`: the context has the value that the output will see; otherwise the columns that
  // read it are left out.
  void Add(const RecordContext& context, bool value_known);
  // Tells the tables what the values are. What the file says itself stays.
  void Finish();

 private:
  void AddRow(std::size_t table, bool value_known);

  std::vector<WantedTable>& tables_;
  std::vector<std::unique_ptr<RecordFilter>> filters_;  // by table; null: every value
  Evaluator evaluator_;
};

}  // namespace fencepost::consumer
