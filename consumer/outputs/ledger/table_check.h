// Whether the tables can do what the pipeline file asks: one set of rules and one wording for all
// databases. A database's catalogue gives the facts. Pure, but for LearnTables; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/row_rules.h"

namespace fencepost::consumer {

// How a column compares two numbers, or their texts.
enum class Comparison : std::uint8_t {
  kValue,
  kText,     // '9' is greater than '10'
  kNone,     // its type has no order
  kInexact,  // its values are equal to few numbers that are written
};

struct ColumnFacts {
  std::string name;
  std::string type;  // as people read it
  bool generated = false;
  bool must_fill = false;  // NOT NULL, and neither a default nor a trigger fills it
  Comparison comparison = Comparison::kValue;
  CellType cell{};
  bool may_insert = true, may_select = true, may_update = true;
  bool takes_null = true;
  // By what texts that differ can compare equal (a collation); "": none do.
  std::string folded_by{};
  std::string declared{};  // with length and precision; empty: as `type`
};

struct TableFacts {
  std::string name;  // in messages, and in the SQL of hints
  std::vector<ColumnFacts> columns;
  // The columns of each unique index, in its order, that holds for all rows and at once. nullopt:
  // nothing is known of them (a view).
  std::optional<std::vector<std::vector<std::string>>> unique =
      std::vector<std::vector<std::string>>{};
  // Why exactly-once cannot be kept with it: "is unlogged: …", and what helps.
  std::optional<RowProblem> unsafe{};
  bool is_table = true;
  bool hides_rows = false;  // from this role
  bool may_insert = true, may_select = true, may_update = true, may_delete = true;
};

// Words of a database.
struct TableTerms {
  // Its section in the pipeline file: "output.mysql"; of CheckTable and AdviseOnTable the effect's
  // (EffectShape::SectionIn).
  std::string output;
  std::string where;             // the database, in errors
  std::string_view ledger_file;  // makes the ledger; "": a worker always may
  bool exact_names = false;      // of columns: their case counts
  bool ledger_types = false;     // LedgerColumn::postgres holds
  char quote = '"';              // of names, in the SQL of hints
  std::string schema{};          // of a table that is named without one
  // MySQL: of texts whose every byte counts, blanks at the end too.
  std::string_view collation{};
};

OutputError SchemaError(std::string where, std::string what, std::string hint);
OutputError DeniedError(std::string where, std::string what, std::string hint);

// Where the shape's columns are in `facts`, if the table can take what the shape writes.
tl::expected<std::vector<std::size_t>, OutputError> CheckTable(const TableFacts& facts,
                                                               const RowShape& shape,
                                                               const TableTerms& terms);
// What works, and refuses records that the file means to take; a line each.
std::vector<std::string> AdviseOnTable(const TableFacts& facts, const RowShape& shape,
                                       const TableTerms& terms);
tl::expected<void, OutputError> CheckLedger(const TableFacts& facts, const LedgerTable& ledger,
                                            const TableTerms& terms);

// What LearnTables asks a database.
class Catalogue {
 public:
  template <typename T>
  using Answer = tl::expected<T, OutputError>;
  using Facts = Answer<std::optional<TableFacts>>;  // nullopt: there is no such table
  using Name = std::vector<std::string>;            // NAME, or SCHEMA and NAME

  virtual ~Catalogue() = default;
  // A table of effects, for rows of this shape.
  virtual Facts ReadTable(const Name& name, const RowShape& shape) = 0;
  // The one that was read last is good: where it has the shape's columns.
  virtual void TakeTable(const std::vector<std::size_t>& columns) = 0;
  virtual Answer<void> TakeStatement(const EffectShape& /*effect*/) { return {}; }
  // Why it may be missing, to stand behind a hint: "; …"; "": nothing is known.
  virtual std::string WhyMissing(const Name& /*name*/) { return ""; }
  virtual Facts ReadLedger(const LedgerTable& ledger) = 0;
  virtual Answer<void> CreateLedger(const LedgerTable& ledger) = 0;
  // Whether this ledger has a row of the pipeline for which something was written. One that is
  // missing, or that this role may not read, has none.
  virtual Answer<bool> HasRows(const LedgerTable& ledger, const std::string& pipeline) = 0;
  // Makes or changes tables, in one transaction where the database has one for that.
  virtual Answer<void> Run(const std::vector<std::string>& statements) = 0;
  // A type of the file as ColumnFacts::declared would have it, where the database can tell.
  virtual Answer<std::string> TypeInFull(const std::string& type) { return type; }
  // Whether tables can be made in it.
  virtual Answer<bool> HasSchema(const std::string& /*name*/) { return true; }

  std::vector<std::string> advice;  // AdviseOnTable, of LearnTables
};

// Checks what can be checked before the first record, and creates the ledger where it is missing
// and may be created. Each table is taken, in the order of the effects.
tl::expected<void, OutputError> LearnTables(Catalogue& catalogue, const EffectShapes& effects,
                                            const LedgerTerms& asked, const TableTerms& terms);

}  // namespace fencepost::consumer
