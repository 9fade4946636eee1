// The records of one batch with their effects evaluated: of each record its rows of each table
// (mostly one; of an effect with `each` one an element; and that may be none). Keeps its memory
// from batch to batch. No database here; one thread.
//
// Where the order of the records does not matter they are in byte order of their ids, so that
// every writer takes row locks in the same order and no two deadlock; where it does
// (RowShape::ordered), they are in the order of the request, and the SQL sorts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

struct CellType;

// What an output knows of the types of one table's columns, by the place of the column in the
// shape.
class CellTypes {
 public:
  virtual ~CellTypes() = default;
  virtual std::string_view Name(std::size_t column) const = 0;
  // nullptr: nothing is known of it. Of an array: its elements'.
  virtual const CellType* Type(std::size_t /*column*/) const { return nullptr; }
  // As MakeCell (cell_types.h).
  virtual tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                                  std::string& text, std::size_t at) = 0;
};

class TableRows;

class BatchRows {
 public:
  using MakeFilter = decltype(OutputTerms::make_filter);
  BatchRows(EffectShapes effects, std::string worker, const MakeFilter& make_filter = {});
  BatchRows(const BatchRows&) = delete;
  BatchRows& operator=(const BatchRows&) = delete;

  // The first of `items`, as far as they have at most kMostBytes together, and at least one.
  // Records that a selector or a rule refuses get kBadRecord in `outcomes` (as many as `items`);
  // then no record has an entry, since one may be behind a refused one of its chain. Those
  // without an entry and without blame are kNotWritten.
  //
  // The error is what the types refuse first; no record has an entry then. It blames none, for the
  // types may be wrong, as with a refusal of the database (write_retry.h). It is one line that
  // holds nothing of a record.
  //
  // `types`: of each table, or of none.
  // `apart`: what is refused, by the types with the reason kOutput, leaves the others their
  // entries, but for those behind it in its chain.
  enum class Refused : std::uint8_t { kTogether, kApart };
  tl::expected<void, std::string> Fill(const std::vector<WriteItem>& items,
                                       std::vector<WriteOutcome>& outcomes,
                                       std::span<CellTypes* const> types = {},
                                       Refused refused = Refused::kTogether);
  // These records alone, until it is filled again; by their places as they were filled.
  void Select(const std::vector<std::size_t>& places);
  [[nodiscard]] std::size_t place(std::size_t record) const { return records_[record].place; }
  // Those of which `text` quotes the most cells, as databases do: "x", 'x', (x, y). A guess.
  [[nodiscard]] std::vector<std::size_t> Quoted(std::string_view text) const;
  // Several copies are made of what one transaction holds.
  static constexpr std::size_t kMostBytes = 8u << 20;
  // Of one record, where it has several effects or rows of elements.
  static constexpr std::size_t kMostRows = 10'000;
  static constexpr std::size_t kMostText = 64u << 20;

  [[nodiscard]] std::size_t size() const { return records_.size(); }  // records
  [[nodiscard]] const WriteItem& item(std::size_t record) const { return *records_[record].item; }
  // In `items`.
  [[nodiscard]] std::size_t index(std::size_t record) const { return records_[record].index; }
  [[nodiscard]] std::string_view source(std::size_t record) const {
    return View(records_[record].source);
  }
  [[nodiscard]] std::size_t bytes(std::size_t record) const { return records_[record].bytes; }

  // The tables, in the order of the effects.
  [[nodiscard]] std::size_t tables() const { return tables_.size(); }
  [[nodiscard]] TableRows of(std::size_t table) const;
  // Of all tables: rows of a record; of a dead letter none.
  [[nodiscard]] std::size_t rows(std::size_t record) const;
  // It puts rows into a table (a deletion does not, nor an empty list of values).
  [[nodiscard]] bool takes_rows(std::size_t record) const;
  // What becomes of a row depends on which of the batch's records comes first, in any table.
  [[nodiscard]] bool ordered() const { return ordered_; }

  // All records, in byte order of their ids.
  [[nodiscard]] const std::vector<std::size_t>& by_id() const { return by_id_; }
  // The record of this id.
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view record_id) const;

 private:
  friend class TableRows;
  struct Span {
    std::size_t at = 0;
    std::size_t size = 0;
    bool null = false;
    bool omitted = false;
  };
  struct Row {
    std::size_t first_cell = 0;
    std::optional<std::size_t> element;  // of `each`
    bool deletes = false;
    bool omits = false;
  };
  struct Table {
    const EffectShape* effect = nullptr;
    std::string name;
    bool may_omit = false;
    bool one_row_each = true;
    std::vector<Row> rows;
    std::size_t begun = 0;  // rows of the records before the one that is evaluated
  };
  struct Extent {
    std::size_t first_row = 0;
    std::size_t rows = 0;
  };
  struct Entry {
    const WriteItem* item = nullptr;
    std::size_t index = 0;
    std::size_t place = 0;
    std::size_t extents = 0;  // the first of the tables'
    std::size_t bytes = 0;
    Span source;
  };
  // What an effect needs to find its rows.
  struct Chooser {
    std::size_t first_table = 0;
    std::unique_ptr<RecordFilter> filter;  // nullptr: none
  };

  [[nodiscard]] std::string_view View(const Span& span) const {
    return std::string_view(text_).substr(span.at, span.size);
  }
  [[nodiscard]] const Extent& ExtentOf(std::size_t record, std::size_t table) const {
    return extents_[records_[record].extents + table];
  }
  [[nodiscard]] bool DependOnOrder() const;
  void Clear();
  // Of the next item, whose values are evaluated; false: it goes beyond kMostBytes.
  bool AddRecord(const WriteItem& item, std::size_t index, std::size_t begin);
  tl::expected<void, std::string> EvaluateItem(const WriteItem& item);
  tl::expected<void, std::string> EvaluateEffect(std::size_t effect, const WriteItem& item,
                                                 const ItemValue& value);
  tl::expected<void, std::string> EvaluateElements(std::size_t effect,
                                                   const RecordContext& context);
  // A row of what the evaluator has; `null`: of a tombstone.
  tl::expected<void, std::string> EvaluateRow(std::size_t effect, bool null);
  // nullopt: none.
  tl::expected<std::optional<std::size_t>, std::string> TableOf(std::size_t effect);
  tl::expected<void, std::string> EvaluateCell(std::size_t table, std::size_t column,
                                               bool must_stand);
  // Whether nothing of the batch comes before these rows that they need to find in the table: a row
  // that leaves a column out keeps what the last row of its key wrote. Their keys are in own_keys_,
  // until the record is added.
  bool ComesFirst();
  [[nodiscard]] std::string KeyOf(const Table& table, const Row& row) const;
  [[nodiscard]] bool IsOmitted(std::size_t table, std::size_t column, bool found,
                               std::size_t at) const;
  // "effect 2 (order_lines): element 3: "; empty: there is one effect, without `each`.
  static std::string Where(const Table& table, std::optional<std::size_t> element);
  // "column arr (integer[]) from json:/arr", behind Where.
  [[nodiscard]] std::string Cell(const Table& table, std::optional<std::size_t> element,
                                 std::size_t column, std::string_view type) const;
  void Sort();

  const EffectShapes effects_;
  const std::string worker_;
  std::vector<Chooser> choosers_;  // by effect
  std::string problem_;            // of a filter that was not made; empty: none
  bool ordered_ = false;
  bool may_omit_ = false;
  bool bounded_ = false;
  bool one_a_chain_ = false;  // a batch has one record of each chain
  Evaluator evaluator_;
  std::string array_;   // of `each`
  std::string chosen_;  // by a route
  std::optional<std::size_t> element_;
  std::string text_;       // every cell and source, one after the other
  std::size_t begin_ = 0;  // of the record that is evaluated
  std::unordered_set<std::uint64_t> chains_;
  std::vector<Span> cells_;
  std::vector<Table> tables_;
  std::vector<Extent> extents_;
  std::vector<Entry> records_;
  std::vector<Entry> filled_;  // all of them, once some are selected
  std::size_t bytes_ = 0;
  std::vector<std::size_t> by_id_;
  std::unordered_set<std::string> keys_;      // of the rows, where some may leave columns out
  std::unordered_set<std::string> own_keys_;  // of the rows of the record that is evaluated
  std::span<CellTypes* const> types_;         // during Fill
  std::optional<std::string> refused_;        // by the types, since Fill began
};

// The rows of one table; as long as the batch.
class TableRows {
 public:
  TableRows(const BatchRows& batch, std::size_t table)
      : batch_(&batch), table_(&batch.tables_[table]), place_(table) {}

  [[nodiscard]] const RowShape& shape() const { return table_->effect->shape; }
  [[nodiscard]] const EffectShape& effect() const { return *table_->effect; }
  [[nodiscard]] const std::string& name() const { return table_->name; }  // as in the file
  [[nodiscard]] std::size_t columns() const { return shape().columns.size(); }

  // Rows of a record, in the order of its values and elements. One that deletes has cells only for
  // key and fence.
  [[nodiscard]] std::size_t rows(std::size_t record) const { return extent(record).rows; }
  [[nodiscard]] bool deletes(std::size_t record, std::size_t row) const {
    return at(record, row).deletes;
  }
  // nullopt: SQL NULL.
  [[nodiscard]] std::optional<std::string_view> cell(std::size_t record, std::size_t column,
                                                     std::size_t row = 0) const;
  // The row leaves the column out: its cell is nullopt, and no NULL.
  [[nodiscard]] bool omits(std::size_t record, std::size_t column, std::size_t row = 0) const {
    return batch_->cells_[at(record, row).first_cell + column].omitted;
  }
  // It leaves any out. No earlier row of the batch has its key then.
  [[nodiscard]] bool omits_any(std::size_t record, std::size_t row) const {
    return at(record, row).omits;
  }
  // Its key, as text: what the database takes for one key may have several.
  [[nodiscard]] std::string key(std::size_t record, std::size_t row) const {
    return batch_->KeyOf(*table_, at(record, row));
  }
  [[nodiscard]] bool any() const;  // rows, of the records that are selected
  // Each record has one row, which has all columns, and none deletes.
  [[nodiscard]] bool one_row_each() const { return table_->one_row_each; }
  // What a refusal of the database says of a row: "column arr (integer[]) from json:/arr: WHAT".
  [[nodiscard]] std::string About(std::size_t record, std::size_t row, std::size_t column,
                                  std::string_view type, std::string_view what) const;
  // The effect and the element: "effect 2 (order_lines): element 3: ". Empty: there is one effect,
  // without `each`. Without a row, the effect.
  [[nodiscard]] std::string Where() const { return BatchRows::Where(*table_, std::nullopt); }
  [[nodiscard]] std::string Where(std::size_t record, std::size_t row) const {
    return BatchRows::Where(*table_, at(record, row).element);
  }
  // The same of the record's row that alone has these values, "7, 1)…", in these columns. Where
  // several have them, or none: "… one of its 3 rows: ".
  [[nodiscard]] std::string WhereKey(std::size_t record, const std::vector<std::string>& columns,
                                     std::string_view values) const;

 private:
  [[nodiscard]] bool HasKey(std::size_t record, std::size_t row,
                            const std::vector<std::string>& columns, std::string_view values) const;
  [[nodiscard]] const BatchRows::Extent& extent(std::size_t record) const {
    return batch_->ExtentOf(record, place_);
  }
  [[nodiscard]] const BatchRows::Row& at(std::size_t record, std::size_t row) const {
    return table_->rows[extent(record).first_row + row];
  }

  const BatchRows* batch_;
  const BatchRows::Table* table_;
  std::size_t place_;
};

inline TableRows BatchRows::of(std::size_t table) const { return {*this, table}; }

}  // namespace fencepost::consumer
