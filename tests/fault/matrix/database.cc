#include "tests/fault/matrix/database.h"

namespace fencepost::matrix {

void Database::Reset() {
  proxy_.Restore();
  proxy_.Watch(nullptr);
  Resume();
  Start();
  Forget();
}

Effect EffectOf(const testing::SqlServer::Row& row) {
  return {std::stoi(row.at(0).value().substr(2)),
          std::stoll(row.at(1).value()),
          {std::stoi(row.at(2).value()), std::stoll(row.at(3).value())},
          std::stoll(row.at(4).value())};
}

}  // namespace fencepost::matrix
