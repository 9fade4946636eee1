// Cells as the types of PostgreSQL's columns take them: JSON strings stay strings in json columns,
// JSON arrays become array literals, whole numbers such as 1.0 and 1e3 go into integer columns, and
// what `convert` says is done. Everything else is text, which PostgreSQL reads as the column's
// type. The table of it: README.md. Pure but for its memory; one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/postgres/postgres_schema.h"
#include "consumer/outputs/rows/batch_rows.h"

namespace fencepost::consumer {

class PgCells final : public CellTypes {
 public:
  PgCells() = default;
  PgCells(const std::vector<PgColumn>& columns, const RowShape& shape)
      : columns_(&columns), shape_(&shape) {}

  [[nodiscard]] std::string_view Name(std::size_t column) const override;
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override;

 private:
  const std::vector<PgColumn>* columns_ = nullptr;
  const RowShape* shape_ = nullptr;
};

// What becomes of JSON in a column. `array` is valid JSON. For PgCells and its tests.
enum class PgElement : std::uint8_t { kText, kInteger, kJson };
tl::expected<std::string, std::string> PgArrayLiteral(std::string_view array, PgElement element);

}  // namespace fencepost::consumer
