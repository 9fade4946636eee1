#include "consumer/outputs/tables/table_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/outputs/rows/row_sql.h"
#include "consumer/outputs/tables/column_types.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

const char* DdlOf(const LedgerTable& ledger, Dialect dialect) {
  if (dialect == Dialect::kPostgres) return ledger.postgres;
  return dialect == Dialect::kMysql ? ledger.mysql : ledger.sqlite;
}

std::string StatementOf(std::string_view sql) {
  constexpr std::string_view kAround = " \n;";
  const std::size_t begin = std::min(sql.find_first_not_of(kAround), sql.size());
  return std::string(sql.substr(begin, sql.find_last_not_of(kAround) + 1 - begin));
}

// Schema and name: the same for all spellings of one table.
std::vector<std::string> FullName(const std::string& table, Dialect dialect,
                                  const TableTerms& terms) {
  auto parts = SplitTableName(table).value_or(std::vector<std::string>{table});
  if (parts.size() == 1) parts.insert(parts.begin(), terms.schema);
  if (dialect == Dialect::kSqlite) {
    for (std::string& part : parts) part = Lower(part);
  }
  return parts;
}

class TablePlanner {
 public:
  TablePlanner(const WantedTable& wanted, const FoundTables& found, Dialect dialect,
               const TableTerms& terms, TablePlan& plan)
      : wanted_(wanted), found_(found), dialect_(dialect), terms_(terms), plan_(plan) {
    // It was split when the file was checked.
    if (auto parts = SplitTableName(wanted.name)) parts_ = std::move(*parts);
  }

  // `there`: the table as it is, or as statements before these leave it.
  void Plan(std::optional<TableFacts>& there, bool exactly_once) {
    if (!there) {
      Create();
      there = TableFacts{.name = wanted_.name, .columns = {}};
      for (std::size_t i = 0; i < wanted_.columns.size(); ++i) there->columns.push_back(Coming(i));
      if (!wanted_.shape.key.empty()) there->unique->push_back(Key());
      return;
    }
    facts_ = std::move(*there);
    if (exactly_once && facts_.unsafe) {
      Differs(fmt::format("{} {}", facts_.name, facts_.unsafe->what));
    }
    AddColumns();
    AddKey();
    Check();
    there = std::move(facts_);
  }

 private:
  // Of this type nothing is known but that it is coming.
  static constexpr std::string_view kComing = "";
  [[nodiscard]] ColumnFacts Coming(std::size_t column) const {
    return {.name = NameOf(column), .type = std::string(kComing)};
  }

  // What a worker would refuse at its start. Columns that come are not known in full.
  void Check() {
    const auto coming = [](const ColumnFacts& column) { return column.type == kComing; };
    if (std::ranges::any_of(facts_.columns, coming)) return;
    TableTerms terms = terms_;
    terms.output = wanted_.output;
    if (const auto checked = CheckTable(facts_, wanted_.shape, terms); !checked) {
      const Error& error = checked.error().error;
      Differs(error.what + (error.hint.empty() ? "" : "; " + error.hint));
    }
  }

  [[nodiscard]] std::string Quoted(std::string_view name) const {
    return QuoteIdentifier(name, dialect_ == Dialect::kMysql ? '`' : '"');
  }
  [[nodiscard]] std::string Table() const {
    std::string name;
    for (const std::string& part : parts_) name += (name.empty() ? "" : ".") + Quoted(part);
    return name;
  }
  [[nodiscard]] std::string Folded(std::string_view name) const {
    return terms_.exact_names ? std::string(name) : Lower(name);
  }
  [[nodiscard]] const std::string& NameOf(std::size_t column) const {
    return wanted_.shape.columns[column].name;
  }
  [[nodiscard]] std::vector<std::string> Key() const {
    std::vector<std::string> key;
    for (const std::size_t place : wanted_.shape.key) key.push_back(NameOf(place));
    return key;
  }
  [[nodiscard]] std::string KeyNames() const {
    std::string names;
    for (const std::size_t place : wanted_.shape.key) {
      names += (names.empty() ? "" : ", ") + Quoted(NameOf(place));
    }
    return names;
  }
  [[nodiscard]] std::string Definition(std::size_t column) const {
    return fmt::format("{} {}", Quoted(NameOf(column)),
                       TypeFor(wanted_.columns[column], wanted_.shape, column, dialect_, terms_));
  }
  void Differs(std::string what) { plan_.differences.push_back(std::move(what)); }

  void Remark(std::size_t column, TablePlan::Step& step) const {
    const WantedColumn& wanted = wanted_.columns[column];
    const RowShape& shape = wanted_.shape;
    if (wanted.by == KnownBy::kSamples && wanted.kind == ValueKind::kWhole &&
        !shape.IsKey(column) && shape.fence != column) {
      step.remarks.push_back(fmt::format(
          "{}: a bigint takes no fractions, and none is in the values that were sampled ({}): say "
          "it in {}.types if one may come",
          NameOf(column), wanted.sampled.count(), wanted_.output));
    }
    const bool number = wanted.kind == ValueKind::kDecimal || wanted.kind == ValueKind::kLongWhole;
    if (dialect_ == Dialect::kSqlite && wanted.type.empty() && number && shape.fence != column) {
      step.remarks.push_back(fmt::format(
          "{}: a text, since SQLite would round {}: say numeric in {}.types to compare by value",
          NameOf(column), WordsOf(wanted.kind), wanted_.output));
    }
    if (wanted.by != KnownBy::kNothing) return;
    const std::string by = shape.columns[column].selector.Text();
    const bool fence = wanted.kind == ValueKind::kWhole;
    step.remarks.push_back(
        fmt::format("{}: nothing tells what {} is{}, so {}: say it in {}.types{}", NameOf(column),
                    by, wanted_.sampled ? ", nor do the samples" : "",
                    fence ? "it is a number, being the fence" : "it is a text", wanted_.output,
                    wanted_.sampled ? "" : ", or read records with --sample"));
  }

  void CreateSchema() {
    if (parts_.size() < 2 || !found_.missing_schemas.contains(parts_.front())) return;
    std::string sql = fmt::format("CREATE SCHEMA IF NOT EXISTS {}", Quoted(parts_.front()));
    if (std::ranges::find(plan_.steps, sql, &TablePlan::Step::sql) != plan_.steps.end()) return;
    plan_.steps.push_back({.sql = std::move(sql), .remarks = {}});
  }

  void Create() {
    CreateSchema();
    TablePlan::Step step;
    std::string parts;
    for (std::size_t i = 0; i < wanted_.columns.size(); ++i) {
      parts += fmt::format("{}  {}", parts.empty() ? "" : ",\n", Definition(i));
      Remark(i, step);
    }
    if (!wanted_.shape.key.empty()) parts += fmt::format(",\n  PRIMARY KEY ({})", KeyNames());
    if (wanted_.shape.on_conflict == OnConflict::kIgnore && wanted_.shape.key.empty()) {
      step.remarks.push_back(fmt::format(
          "{}.on_conflict: ignore has no key, so there is no unique index, and no row to be left "
          "as it is; give key, or add an index",
          wanted_.output));
    }
    step.sql = fmt::format("CREATE TABLE {} (\n{}\n)", Table(), parts);
    // So that a crash or a rollback takes rows and ledger alike.
    if (dialect_ == Dialect::kMysql) step.sql += " ENGINE=InnoDB";
    plan_.steps.push_back(std::move(step));
  }

  [[nodiscard]] const ColumnFacts* Find(std::string_view name) const {
    const auto same = [&](const ColumnFacts& c) { return Folded(c.name) == Folded(name); };
    const auto found = std::ranges::find_if(facts_.columns, same);
    return found == facts_.columns.end() ? nullptr : &*found;
  }

  void AddColumns() {
    for (std::size_t i = 0; i < wanted_.columns.size(); ++i) {
      if (const ColumnFacts* column = Find(NameOf(i))) {
        CompareType(i, *column);
        continue;
      }
      if (facts_.is_table && facts_.unique) {
        TablePlan::Step step{
            .sql = fmt::format("ALTER TABLE {} ADD COLUMN {}", Table(), Definition(i)),
            .remarks = {}};
        Remark(i, step);
        plan_.steps.push_back(std::move(step));
      } else {
        Differs(fmt::format("{} has no column {}, and is a view: add it there", facts_.name,
                            NameOf(i)));
      }
      facts_.columns.push_back(Coming(i));
    }
  }

  void CompareType(std::size_t place, const ColumnFacts& column) {
    if (column.type == kComing) return;
    const WantedColumn& wanted = wanted_.columns[place];
    const std::string name = fmt::format("{}.{}", facts_.name, column.name);
    const std::string& is = column.declared.empty() ? column.type : column.declared;
    if (const std::string problem = ProblemOfSamples(place, column); !problem.empty()) {
      Differs(fmt::format("{} is {}, and a sampled value {}; change it, or correct {}.columns",
                          name, is, problem, wanted_.output));
    }
    if (wanted.by == KnownBy::kSchema) {
      const std::string problem = ProblemOfKind(wanted.kind, column);
      if (problem.empty()) return;
      Differs(
          fmt::format("{} is {}, which {}, as the schema says; change it, or correct {}.columns",
                      name, is, problem, wanted_.output));
    }
    if (wanted.by == KnownBy::kSamples) NoteTexts(wanted, column, name, is);
    if (wanted.by != KnownBy::kTypes) return;
    const auto written = found_.types.find(wanted.type);
    const std::string asked =
        written == found_.types.end() ? TypeInCatalogue(wanted.type, dialect_) : written->second;
    const bool json = asked == "json" && column.cell.kind == CellKind::kJson;
    if (json || IsSameType(asked, TypeInCatalogue(is, dialect_), dialect_)) return;
    Differs(
        fmt::format("{} is {}, and {}.types says {}; it stays as it is: change it yourself, or "
                    "correct types",
                    name, is, wanted_.output, wanted.type));
  }

  // As a text, 9 is above 10.
  void NoteTexts(const WantedColumn& wanted, const ColumnFacts& column, const std::string& name,
                 const std::string& type) {
    const bool other = wanted.kind != ValueKind::kText && wanted.kind != ValueKind::kJson &&
                       wanted.kind != ValueKind::kBytes;
    if (!other || column.cell.kind != CellKind::kText) return;
    plan_.notes.push_back(
        fmt::format("{} is {}, and the {} sampled values are {}: they are kept "
                    "as texts",
                    name, type, wanted.sampled.count(), WordsOf(wanted.kind)));
  }

  // What a worker would say of the first that the column does not take; empty: it takes all.
  [[nodiscard]] std::string ProblemOfSamples(std::size_t place, const ColumnFacts& column) const {
    if (column.type.ends_with("[]")) return "";  // an array, whose elements alone are known
    for (const SampledValues::Value& value : wanted_.columns[place].sampled.kept()) {
      std::string text = value.text;
      const auto made = MakeCell(column.cell, wanted_.shape.columns[place], value.type, text, 0);
      if (!made) return made.error();
    }
    return "";
  }

  [[nodiscard]] bool IsUnique() const {
    std::vector<std::string> key;
    for (const std::size_t place : wanted_.shape.key) key.push_back(Folded(NameOf(place)));
    std::ranges::sort(key);
    return std::ranges::any_of(*facts_.unique, [&](std::vector<std::string> index) {
      for (std::string& name : index) name = Folded(name);
      std::ranges::sort(index);
      return index == key;
    });
  }

  // One name for all workers: of two that make it at once, one fails and looks again. Of at most 63
  // bytes, to which PostgreSQL would cut it.
  [[nodiscard]] std::string IndexName() const {
    constexpr std::size_t kMost = 63;
    constexpr std::size_t kDigits = 16;
    std::string name = fmt::format("fencepost_{}_{}", parts_.back(), fmt::join(Key(), "_"));
    if (name.size() <= kMost) return name;
    std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : name) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    std::size_t end = kMost - kDigits - 1;
    while ((name[end] & 0xc0) == 0x80) --end;  // no part of a character
    return fmt::format("{}_{:016x}", name.substr(0, end), sum);
  }

  void AddKey() {
    if (!wanted_.shape.updates() || !facts_.unique || IsUnique()) return;
    const std::string name = Quoted(IndexName());
    std::string sql;
    if (dialect_ == Dialect::kMysql) {
      sql = fmt::format("ALTER TABLE {} ADD UNIQUE {} ({})", Table(), name, KeyNames());
    } else if (dialect_ == Dialect::kPostgres) {
      sql = fmt::format("CREATE UNIQUE INDEX {} ON {} ({})", name, Table(), KeyNames());
    } else {  // where the schema is the index's
      const std::string schema = parts_.size() > 1 ? Quoted(parts_.front()) + "." : "";
      sql = fmt::format("CREATE UNIQUE INDEX {}{} ON {} ({})", schema, name, Quoted(parts_.back()),
                        KeyNames());
    }
    plan_.steps.push_back(
        {.sql = std::move(sql),
         .remarks = {fmt::format("{}.on_conflict: update finds rows by key; fails where two rows "
                                 "have the same, and locks the table while it is made",
                                 wanted_.output)}});
    facts_.unique->push_back(Key());
  }

  const WantedTable& wanted_;
  const FoundTables& found_;
  const Dialect dialect_;
  const TableTerms& terms_;
  TablePlan& plan_;
  std::vector<std::string> parts_;  // of its name
  TableFacts facts_;                // with what the plan adds
};

}  // namespace

TablePlan PlanTables(const std::vector<WantedTable>& wanted, const FoundTables& found,
                     Dialect dialect, const TableTerms& terms, bool exactly_once) {
  TablePlan plan;
  std::map<std::vector<std::string>, std::optional<TableFacts>> there;  // by FullName
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    auto& facts =
        there.try_emplace(FullName(wanted[i].name, dialect, terms), found.tables[i]).first->second;
    TablePlanner(wanted[i], found, dialect, terms, plan).Plan(facts, exactly_once);
  }
  for (const auto& [ledger, facts] : found.ledgers) {
    if (!facts) {
      plan.steps.push_back({.sql = StatementOf(DdlOf(*ledger, dialect)), .remarks = {}});
    } else if (const auto checked = CheckLedger(*facts, *ledger, terms); !checked) {
      plan.differences.push_back(checked.error().error.Line());
    }
  }
  return plan;
}

}  // namespace fencepost::consumer
