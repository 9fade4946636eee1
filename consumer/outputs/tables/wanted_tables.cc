#include "consumer/outputs/tables/wanted_tables.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/kept_values.h"
#include "consumer/pipeline/route.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {
namespace {

using Kind = Selector::Kind;

ValueKind KindMadeBy(const Column& column, bool fence) {
  switch (column.conversion) {
    case Conversion::kDays:
      return ValueKind::kDate;
    case Conversion::kSeconds:
    case Conversion::kMillis:
    case Conversion::kMicros:
      return ValueKind::kMoment;
    case Conversion::kNanos:  // no type of times keeps nine digits; as texts they have no order
      return fence ? ValueKind::kMoment : ValueKind::kText;
    case Conversion::kBase64:
    case Conversion::kHex:
      return ValueKind::kBytes;
    case Conversion::kBool:
      return ValueKind::kBoolean;
    case Conversion::kInt32:
    case Conversion::kInt64:
      return ValueKind::kWhole;
    case Conversion::kDecimal:
      return ValueKind::kDecimal;
    case Conversion::kJson:
      return ValueKind::kJson;
    case Conversion::kNone:
      break;
  }
  return ValueKind::kText;
}

// nullopt: it may be anything.
std::optional<ValueKind> KindOf(const Selector& selector) {
  if (selector.ReadsJson()) return std::nullopt;
  if (selector.kind == Kind::kTimestamp) return ValueKind::kMoment;
  return IsNumber(selector) ? ValueKind::kWhole : ValueKind::kText;
}

WantedColumn ColumnOf(const RowShape& shape, std::size_t place,
                      const std::map<std::string, std::string>& types) {
  const Column& column = shape.columns[place];
  const bool fence = shape.fence == place;
  const auto type = types.find(column.name);
  if (type != types.end()) return {.type = type->second, .by = KnownBy::kTypes};
  if (column.conversion != Conversion::kNone) {
    return {.kind = KindMadeBy(column, fence), .by = KnownBy::kConvert};
  }
  const auto kind = KindOf(column.selector);
  // A version, most likely.
  if (fence && kind.value_or(ValueKind::kText) == ValueKind::kText) {
    return {.kind = ValueKind::kWhole};
  }
  if (kind) return {.kind = *kind, .by = KnownBy::kSelector};
  return {};
}

ValueKind KindOfNumber(std::string_view text) {
  if (text.find_first_of(".eE") != std::string_view::npos) return ValueKind::kDecimal;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? ValueKind::kWhole : ValueKind::kLongWhole;
}

ValueKind KindOfText(std::string_view text) {
  constexpr std::size_t kDay = std::string_view("2026-11-23").size();
  constexpr int kMostDigits = 6;  // that databases keep behind the second
  const auto iso = ParseIso(text);
  if (!iso || !iso->has_date || iso->digits > kMostDigits) return ValueKind::kText;
  if (iso->has_time) return ValueKind::kMoment;
  return text.size() == kDay ? ValueKind::kDate : ValueKind::kText;
}

// A handler may make what it reads.
bool ReadsValue(const Selector& selector) {
  return selector.kind == Kind::kValue || selector.kind == Kind::kJson || selector.OfElement();
}

}  // namespace

std::optional<Dialect> DialectOf(const OutputOptions& output) {
  if (std::holds_alternative<PostgresOptions>(output)) return Dialect::kPostgres;
  if (std::holds_alternative<MysqlOptions>(output)) return Dialect::kMysql;
  if (std::holds_alternative<SqliteOptions>(output)) return Dialect::kSqlite;
  return std::nullopt;
}

void Learn(WantedTable& table, std::size_t column, ValueKind kind, KnownBy by) {
  WantedColumn& wanted = table.columns[column];
  if (wanted.by != KnownBy::kNothing) return;
  if (table.shape.fence == column && kind == ValueKind::kText) return;
  wanted.kind = kind;
  wanted.by = by;
}

std::vector<WantedTable> WantedTables(const EffectShapes& effects, std::string_view output) {
  std::vector<WantedTable> tables;
  for (const EffectShape& effect : effects) {
    if (effect.shape.statement) continue;
    std::vector<WantedColumn> columns;
    for (std::size_t i = 0; i < effect.shape.columns.size(); ++i) {
      columns.push_back(ColumnOf(effect.shape, i, effect.effect.rules.types));
    }
    for (const std::string& name : effect.tables) {
      tables.push_back({.name = name,
                        .output = effect.SectionIn(output),
                        .shape = effect.shape,
                        .effect = effect.effect,
                        .columns = columns});
    }
  }
  return tables;
}

tl::expected<std::vector<WantedTable>, RowProblem> WantedTables(const OutputOptions& output) {
  constexpr std::string_view kOutputs[] = {"output.postgres", "output.mysql", "output.sqlite"};
  return std::visit(
      [&](const auto& options) -> tl::expected<std::vector<WantedTable>, RowProblem> {
        if constexpr (requires { options.rules; }) {
          return ShapesOf(options).map([&](const EffectShapes& effects) {
            return WantedTables(effects, kOutputs[static_cast<int>(*DialectOf(output))]);
          });
        }
        return std::vector<WantedTable>();
      },
      output);
}

void SampledValues::Add(std::optional<JsonType> type, std::string_view text) {
  constexpr std::size_t kMostKept = 1 << 20;
  ValueKind kind = ValueKind::kText;
  if (type == JsonType::kNumber) kind = KindOfNumber(text);
  if (type == JsonType::kBoolean) kind = ValueKind::kBoolean;
  if (type == JsonType::kObject || type == JsonType::kArray) kind = ValueKind::kJson;
  if (type == JsonType::kString) kind = KindOfText(text);
  seen_.insert(kind);
  ++count_;
  bytes_ += sizeof(Value) + text.size();
  if (bytes_ <= kMostKept) kept_.push_back({.type = type, .text = std::string(text)});
}

std::optional<ValueKind> SampledValues::Kind() const {
  if (seen_.empty()) return std::nullopt;
  if (seen_.size() == 1) return *seen_.begin();
  const auto number = [](ValueKind one) {
    return one == ValueKind::kWhole || one == ValueKind::kLongWhole || one == ValueKind::kDecimal;
  };
  if (!std::ranges::all_of(seen_, number)) return ValueKind::kText;
  return seen_.contains(ValueKind::kDecimal) ? ValueKind::kDecimal : ValueKind::kLongWhole;
}

Sampler::Sampler(std::vector<WantedTable>& tables,
                 const decltype(OutputTerms::make_filter)& make_filter)
    : tables_(tables) {
  for (const WantedTable& table : tables) {
    filters_.push_back(nullptr);
    if (!table.effect.when.any()) continue;
    // It was compiled when the file was checked.
    if (auto filter = make_filter(table.effect.when)) filters_.back() = std::move(*filter);
  }
}

void Sampler::Add(const RecordContext& context, bool value_known) {
  std::string array;
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    const Effect& effect = tables_[table].effect;
    if (value_known && filters_[table] != nullptr &&
        !filters_[table]->Matches(context).value_or(false)) {
      continue;
    }
    evaluator_.Begin(context);
    if (!effect.each) {
      AddRow(table, value_known);
      continue;
    }
    array.clear();
    if (!value_known || !evaluator_.Append(*effect.each, array).value_or(false) ||
        evaluator_.type() != JsonType::kArray) {
      continue;
    }
    RecordContext element = context;
    element.whole = context.value == nullptr ? &context.record->value : context.value;
    std::optional<std::string_view> value;
    element.value = &value;
    for (const std::string_view text : JsonElements(array)) {
      value = text;
      evaluator_.BeginElement(element);
      AddRow(table, value_known);
      ++element.index;
    }
  }
}

void Sampler::AddRow(std::size_t table, bool value_known) {
  WantedTable& wanted = tables_[table];
  std::string text;
  if (const auto& route = wanted.effect.route) {
    if (ReadsValue(route->by) && !value_known) return;
    const auto chosen = Choose(*route, evaluator_, text);
    if (!chosen || *chosen != std::string_view(wanted.name)) return;
  }
  for (std::size_t place = 0; place < wanted.columns.size(); ++place) {
    const Column& column = wanted.shape.columns[place];
    if (ReadsValue(column.selector) && !value_known) continue;
    text.clear();
    const auto found = evaluator_.Append(column.selector, text);
    if (!found || !*found) continue;
    const Conversion encoding =
        column.conversion == Conversion::kDecimal ? Conversion::kBase64 : column.conversion;
    const auto type = evaluator_.type();
    if (wanted.shape.MayOmit(place) && IsKept(wanted.shape.keep, type, text, encoding)) continue;
    wanted.columns[place].sampled.Add(type, text);
  }
}

void Sampler::Finish() {
  for (WantedTable& table : tables_) {
    table.sampled = true;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const auto kind = table.columns[i].sampled.Kind();
      if (kind) Learn(table, i, *kind, KnownBy::kSamples);
    }
  }
}

}  // namespace fencepost::consumer
