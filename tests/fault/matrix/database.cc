#include "tests/fault/matrix/database.h"

#include <algorithm>

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

Effect EffectOf(const testing::SqlServer::Row& row) {
  return {std::stoi(row.at(0).value().substr(2)),
          std::stoll(row.at(1).value()),
          {std::stoi(row.at(2).value()), std::stoll(row.at(3).value())},
          std::stoll(row.at(4).value())};
}

}  // namespace fencepost::matrix
