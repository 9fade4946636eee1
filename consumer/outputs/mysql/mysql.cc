// The MySQL and MariaDB output: one transaction a batch. It first reads, and locks, the ledger rows
// of the batch, then writes what is missing with its effects.
#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/mysql/mysql_output.h"

namespace fencepost::consumer {
namespace {

constexpr unsigned kDuplicateEntry = 1062;
constexpr unsigned kDeadlock = 1213;

}  // namespace

OutputError MysqlOutput::Refused(const MysqlFailure& failure) const {
  const auto column = RefusedColumn(failure);
  return Refusal(ToOutputError(failure, Where()), FailureOf(failure), failure.text, column,
                 column ? target_.tables[column->table].columns[column->column].declared : "");
}

// "Data too long for column 'a' at row 1", "Incorrect integer value: '…' for column `d`.`t`.`a` at
// row 1": what the server says last names the column. Of a single row.
std::optional<MysqlOutput::ColumnOf> MysqlOutput::RefusedColumn(const MysqlFailure& failure) const {
  if (rows_.size() != 1 || writing_.size() != 1) return std::nullopt;
  const std::string_view text = failure.text;
  const auto at = text.rfind("olumn ");
  if (at == std::string_view::npos) return std::nullopt;
  const Row& row = writing_.front();
  const std::vector<MysqlColumn>& columns = target_.tables[row.table].columns;
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const std::string& name = columns[column].name;
    for (const std::string& quoted : {"`" + name + "`", "'" + name + "'"}) {
      if (text.find(quoted + " at row", at) != std::string_view::npos ||
          text.find(quoted + " cannot be null", at) != std::string_view::npos) {
        return ColumnOf{.table = row.table, .row = row.row, .column = column};
      }
    }
  }
  return std::nullopt;
}

MysqlOutput::Answer<void> MysqlOutput::Connect() {
  if (auto connected = connection_.Connect(); !connected) {
    return tl::unexpected(Refused(connected.error()));
  }
  auto target = LearnTarget(connection_, options_, *effects_, AskedOf(incarnation_.has_value()));
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  cells_.clear();
  types_.clear();
  for (std::size_t table = 0; table < target_.tables.size(); ++table) {
    cells_.emplace_back(target_.tables[table].columns, rows_.of(table).shape());
  }
  for (MysqlCells& cells : cells_) types_.push_back(&cells);
  auto incarnation = LearnIncarnation();
  if (!incarnation) return tl::unexpected(incarnation.error());
  const bool same = incarnation_ && incarnation_->IsSame(*incarnation);
  auto complete = CheckLostCommits(same, "");
  if (complete) incarnation_ = std::move(*incarnation);
  return complete;
}

MysqlOutput::Answer<MysqlOutput::Incarnation> MysqlOutput::LearnIncarnation() {
  const auto rows =
      Ask("SELECT concat_ws(' ', @@hostname, @@port, @@server_id, @@datadir), unix_timestamp()");
  if (!rows) return tl::unexpected(rows.error());
  const auto status = Ask("SHOW GLOBAL STATUS LIKE 'Uptime'");
  if (!status) return tl::unexpected(status.error());
  const std::int64_t up = status->empty() ? 0 : MysqlNumber<std::int64_t>(status->front()[1]);
  return Incarnation{.server = rows->front()[0].value_or(""),
                     .started = MysqlNumber<std::int64_t>(rows->front()[1]) - up};
}

MysqlOutput::Answer<MysqlConnection::Rows> MysqlOutput::Ask(const std::string& sql) {
  auto rows = connection_.Query(sql);
  if (!rows) return tl::unexpected(Refused(rows.error()));
  return std::move(*rows);
}

MysqlOutput::Answer<void> MysqlOutput::Run(const std::string& sql) {
  if (auto done = connection_.Query(sql); !done) return tl::unexpected(Refused(done.error()));
  return {};
}

MysqlOutput::Answer<void> MysqlOutput::Insert(const std::string& sql) {
  auto done = connection_.Query(sql);
  if (done) return {};
  if (done.error().code == kDuplicateEntry) done.error().code = kDeadlock;
  return tl::unexpected(Refused(done.error()));
}

// Without an answer the outcome is unknown, whatever the client library calls it. Anything but
// COMMIT is rolled back with its connection.
MysqlOutput::Answer<void> MysqlOutput::Commit() {
  const auto done = connection_.Query("COMMIT");
  if (done) return {};
  OutputError error = Refused(done.error());
  error.unanswered = done.error().kind != MysqlFailure::Kind::kServer;
  return tl::unexpected(std::move(error));
}

void MysqlOutput::RollBack() {
  if (connection_.open() && !connection_.Query("ROLLBACK")) connection_.Close();
}

std::unique_ptr<Output> MakeMysqlOutput(const MysqlOptions& options, std::string pipeline,
                                        std::string worker, OutputTerms terms) {
  return std::make_unique<MysqlOutput>(options, std::move(pipeline), std::move(worker),
                                       std::move(terms));
}

}  // namespace fencepost::consumer
