// A look at an SQL statement's parameters ($1, $2, …), past texts, quoted names, $$ texts and
// comments. Not a parser: the database says what else is wrong. Values; any thread.
#pragma once

#include <set>
#include <string_view>

namespace fencepost::config {

struct StatementLook {
  std::set<int> parameters;  // the numbers that are used
  bool several = false;      // there is something after a ;
};

StatementLook LookAtStatement(std::string_view sql);

}  // namespace fencepost::config
