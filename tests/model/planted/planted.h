// Which bug this program is to have: one of the names in Planted("NAME").
#pragma once

#include <string>

namespace fencepost {

// Before anything of the library runs.
void Plant(std::string name);

}  // namespace fencepost
