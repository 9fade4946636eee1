// What the outputs with a ledger share: the ledger's tables, how a row that stands there is judged,
// and the rows of one batch. No database here; one thread.
//
// The ledger holds one row for each record id whose effect stands, written in the transaction of
// the effect (DESIGN 2.4). Its primary key is what makes the effect happen once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/flow/selector.h"
#include "consumer/options.h"
#include "consumer/outputs/output.h"

namespace fencepost::consumer {

inline constexpr std::string_view kLedgerTable = "fencepost_ledger";
// The same statements as deploy/postgres/ledger.sql (a test compares what they make).
extern const char* const kPostgresLedgerDdl;
extern const char* const kSqliteLedgerDdl;

// "a ""b""": any text as one SQL identifier.
std::string QuoteIdentifier(std::string_view name);
// A table as the pipeline file names it: NAME or SCHEMA.NAME, case as written; a part in double
// quotes may hold a dot ("" is one quote). One or two parts; the error is one line.
tl::expected<std::vector<std::string>, std::string> SplitTableName(std::string_view table);

// A ledger row that this transaction did not insert.
struct LedgerRow {
  std::uint64_t token = 0;
  std::string_view source;
  std::int64_t content_crc = 0;
};
// The order of the questions is the contract: content, then source, then token.
WriteOutcome Classify(const LedgerRow& stands, const WriteItem& item, std::string_view source);

// A batch with its columns evaluated, in byte order of the record ids: every writer takes row locks
// in the same order, so that no two deadlock. Keeps its memory from batch to batch.
class BatchRows {
 public:
  BatchRows(std::vector<Column> columns, std::string worker);

  // Records that a selector refuses get kBadRecord in `outcomes` (as many as `items`) and no row
  // here.
  void Fill(const std::vector<WriteItem>& items, std::vector<WriteOutcome>& outcomes);

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::size_t columns() const { return columns_.size(); }
  [[nodiscard]] const WriteItem& item(std::size_t row) const { return *rows_[row].item; }
  [[nodiscard]] std::size_t index(std::size_t row) const { return rows_[row].index; }  // in `items`
  [[nodiscard]] std::string_view source(std::size_t row) const { return View(rows_[row].source); }
  // nullopt: SQL NULL.
  [[nodiscard]] std::optional<std::string_view> cell(std::size_t row, std::size_t column) const;
  [[nodiscard]] std::size_t bytes(std::size_t row) const { return rows_[row].bytes; }
  // Among rows [begin, end).
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view record_id, std::size_t begin,
                                                std::size_t end) const;
  // Where a selector's text is not valid UTF-8 or holds a NUL, no text column can take it.
  static bool IsText(std::string_view bytes);

 private:
  struct Span {
    std::size_t at = 0;
    std::size_t size = 0;
    bool null = false;
  };
  struct Row {
    const WriteItem* item = nullptr;
    std::size_t index = 0;
    std::size_t first_cell = 0;
    std::size_t bytes = 0;
    Span source;
  };
  [[nodiscard]] std::string_view View(const Span& span) const {
    return std::string_view(text_).substr(span.at, span.size);
  }
  tl::expected<void, std::string> Evaluate(const WriteItem& item);

  std::vector<Column> columns_;
  std::string worker_;
  Evaluator evaluator_;
  std::string text_;  // every cell and source, one after the other
  std::vector<Span> cells_;
  std::vector<Row> rows_;
};

}  // namespace fencepost::consumer
