// The statements that write a batch's effects, by the rules. Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/mysql/mysql_schema.h"
#include "consumer/outputs/rows/batch_rows.h"

namespace fencepost::consumer {

class MysqlEffects {
 public:
  MysqlEffects(const MysqlTarget& target, const RowShape& shape, std::size_t max_statement);

  // Visits the statements for these records of the batch, in their order, until a visit fails. Rows
  // that follow each other are inserted together, as far as a statement's size allows.
  tl::expected<void, OutputError> Write(
      const BatchRows& rows, const std::vector<std::size_t>& records,
      const std::function<tl::expected<void, OutputError>(const std::string& sql)>& visit) const;

 private:
  void AppendCell(const BatchRows& rows, std::size_t record, std::size_t row, std::size_t column,
                  std::string& sql) const;
  [[nodiscard]] std::string OnDuplicateKey() const;
  [[nodiscard]] std::string DeleteSql(const BatchRows& rows, std::size_t record,
                                      std::size_t row) const;

  const MysqlTarget& target_;
  const RowShape& shape_;
  const std::size_t most_;
  std::string insert_;        // INSERT INTO … VALUES
  std::string on_duplicate_;  // behind the rows
};

}  // namespace fencepost::consumer
