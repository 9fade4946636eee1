// The records of one batch with their columns evaluated: one entry a record, which holds its rows
// (one; or one a value of the handler's, and that may be none). Keeps its memory from batch to
// batch. No database here; one thread.
//
// Where the order of the records does not matter they are in byte order of their ids, so that
// every writer takes row locks in the same order and no two deadlock; where it does
// (RowShape::ordered), they are in the order of the request, and the SQL sorts.
#pragma once

#include <cstdint>
#include <optional>
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

// What an output knows of its columns' types, by the place of the column in the shape.
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

class BatchRows {
 public:
  BatchRows(RowShape shape, std::string worker);
  BatchRows(std::vector<Column> columns, std::string worker);  // without rules

  // The first of `items`, as far as they have at most kMostBytes together, and at least one.
  // Records that a selector or a rule refuses get kBadRecord in `outcomes` (as many as `items`);
  // then no record has an entry, since one may be behind a refused one of its chain. Those
  // without an entry and without blame are kNotWritten.
  //
  // The error is what the types refuse first; no record has an entry then. It blames none, for the
  // types may be wrong, as with a refusal of the database (write_retry.h). It is one line that
  // holds nothing of a record.
  //
  // `apart`: what is refused, by the types with the reason kOutput, leaves the others their
  // entries, but for those behind it in its chain.
  enum class Refused : std::uint8_t { kTogether, kApart };
  tl::expected<void, std::string> Fill(const std::vector<WriteItem>& items,
                                       std::vector<WriteOutcome>& outcomes,
                                       CellTypes* types = nullptr,
                                       Refused refused = Refused::kTogether);
  // These records alone, until it is filled again; by their places as they were filled.
  void Select(const std::vector<std::size_t>& places);
  [[nodiscard]] std::size_t place(std::size_t record) const { return records_[record].place; }
  // Those of which `text` quotes the most cells, as databases do: "x", 'x', (x, y). A guess.
  [[nodiscard]] std::vector<std::size_t> Quoted(std::string_view text) const;
  // Several copies are made of what one transaction holds.
  static constexpr std::size_t kMostBytes = 8u << 20;

  [[nodiscard]] const RowShape& shape() const { return shape_; }
  [[nodiscard]] std::size_t size() const { return records_.size(); }  // records
  [[nodiscard]] std::size_t columns() const { return shape_.columns.size(); }
  [[nodiscard]] const WriteItem& item(std::size_t record) const { return *records_[record].item; }
  // In `items`.
  [[nodiscard]] std::size_t index(std::size_t record) const { return records_[record].index; }
  [[nodiscard]] std::string_view source(std::size_t record) const {
    return View(records_[record].source);
  }
  [[nodiscard]] std::size_t bytes(std::size_t record) const { return records_[record].bytes; }

  // Rows of a record, in the order of its values; of a dead letter none. One that deletes has cells
  // only for key and fence.
  [[nodiscard]] std::size_t rows(std::size_t record) const { return records_[record].rows; }
  [[nodiscard]] bool deletes(std::size_t record, std::size_t row) const {
    return rows_[records_[record].first_row + row].deletes;
  }
  // nullopt: SQL NULL.
  [[nodiscard]] std::optional<std::string_view> cell(std::size_t record, std::size_t column,
                                                     std::size_t row = 0) const;
  // The row leaves the column out: its cell is nullopt, and no NULL.
  [[nodiscard]] bool omits(std::size_t record, std::size_t column, std::size_t row = 0) const {
    return cells_[rows_[records_[record].first_row + row].first_cell + column].omitted;
  }
  // It leaves any out. No earlier row of the batch has its key then.
  [[nodiscard]] bool omits_any(std::size_t record, std::size_t row) const {
    return rows_[records_[record].first_row + row].omits;
  }
  // Its key, as text: what the database takes for one key may have several.
  [[nodiscard]] std::string key(std::size_t record, std::size_t row) const {
    return KeyOf(rows_[records_[record].first_row + row]);
  }
  // Each record has one row, which has all columns, and none deletes.
  [[nodiscard]] bool one_row_each() const { return one_row_each_; }

  // It puts rows into the table (a deletion does not, nor an empty list of values).
  [[nodiscard]] bool takes_rows(std::size_t record) const;

  // All records, in byte order of their ids.
  [[nodiscard]] const std::vector<std::size_t>& by_id() const { return by_id_; }
  // The record of this id.
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view record_id) const;
  // What a refusal of the database says: "column arr (integer[]) from json:/arr: WHAT".
  [[nodiscard]] std::string About(std::size_t column, std::string_view type,
                                  std::string_view what) const;

 private:
  // "column arr (integer[]) from json:/arr".
  [[nodiscard]] std::string Cell(std::size_t column, std::string_view type) const;

  struct Span {
    std::size_t at = 0;
    std::size_t size = 0;
    bool null = false;
    bool omitted = false;
  };
  struct Row {
    std::size_t first_cell = 0;
    bool deletes = false;
    bool omits = false;
  };
  struct Entry {
    const WriteItem* item = nullptr;
    std::size_t index = 0;
    std::size_t place = 0;
    std::size_t first_row = 0;
    std::size_t rows = 0;
    std::size_t bytes = 0;
    Span source;
  };

  [[nodiscard]] std::string_view View(const Span& span) const {
    return std::string_view(text_).substr(span.at, span.size);
  }
  void Clear();
  // Of the next item, whose values are evaluated; false: it goes beyond kMostBytes.
  bool AddRecord(const WriteItem& item, std::size_t index, std::size_t first_row,
                 std::size_t begin);
  tl::expected<void, std::string> EvaluateRow(const WriteItem& item, const ItemValue& value);
  tl::expected<void, std::string> EvaluateCell(std::size_t column, bool must_stand);
  // Whether nothing of the batch comes before these rows that they need to find in the table: a row
  // that leaves a column out keeps what the last row of its key wrote. Their keys are in own_keys_,
  // until the record is added.
  bool ComesFirst(std::size_t first_row);
  [[nodiscard]] std::string KeyOf(const Row& row) const;
  [[nodiscard]] bool IsOmitted(std::size_t column, bool found, std::size_t at) const;
  void Sort();

  RowShape shape_;
  std::string worker_;
  Evaluator evaluator_;
  std::string text_;  // every cell and source, one after the other
  std::vector<Span> cells_;
  std::vector<Row> rows_;
  std::vector<Entry> records_;
  std::vector<Entry> filled_;  // all of them, once some are selected
  std::size_t bytes_ = 0;
  std::vector<std::size_t> by_id_;
  std::unordered_set<std::string> keys_;      // of the rows, where some may leave columns out
  std::unordered_set<std::string> own_keys_;  // of the rows of the record that is evaluated
  const bool may_omit_;
  bool one_row_each_ = true;
  CellTypes* types_ = nullptr;          // during Fill
  std::optional<std::string> refused_;  // by the types, since Fill began
};

}  // namespace fencepost::consumer
