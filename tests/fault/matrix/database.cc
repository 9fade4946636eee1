#include "tests/fault/matrix/database.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::matrix {

std::optional<DatabaseKind> DatabaseNamed(std::string_view name) {
  const auto at = std::find(kDatabaseNames.begin(), kDatabaseNames.end(), name);
  if (at == kDatabaseNames.end()) return std::nullopt;
  return static_cast<DatabaseKind>(at - kDatabaseNames.begin());
}

void Database::Reset() {
  proxy_.Restore();
  proxy_.Watch(nullptr);
  proxy_.Forward(first_->port());
  failed_over_ = false;
  if (second_) first_->Kill();  // with its session for the replica
  second_.reset();
  Resume();
  Start();
  Forget();
}

void Database::AddReplica() { second_ = MakeReplica(); }

void Database::FailOver() {
  first_->Kill();
  Promote(*second_);
  failed_over_ = true;
  proxy_.Forward(second_->port());
}

std::map<int, std::string> Database::ReadRanges(const testing::EffectsTable& table,
                                                const std::string& pipeline) const {
  const char quote = kind() == Kind::kMysql ? '`' : '"';
  std::map<int, std::string> ranges;
  for (const auto& row : table.Exec(fmt::format(
           "SELECT {0}partition{0}, {1} FROM fencepost_positions WHERE pipeline = '{2}'", quote,
           IsPostgres() ? "done::text" : "done", pipeline))) {
    ranges[std::stoi(row.at(0).value())] = row.at(1).value_or("");
  }
  return ranges;
}

testing::Effect EffectOf(const testing::SqlServer::Row& row) {
  return {.record = {std::stoi(row.at(0).value().substr(2)),
                     {std::stoi(row.at(2).value()), std::stoll(row.at(3).value())}},
          .amount = std::stoll(row.at(1).value()),
          .token = std::stoll(row.at(4).value())};
}

}  // namespace fencepost::matrix
