#include "tests/model/planted/planted.h"

#include <utility>

#include "locking/base/planted.h"

namespace fencepost {
namespace {

std::string& Chosen() {
  static std::string name;
  return name;
}

}  // namespace

void Plant(std::string name) { Chosen() = std::move(name); }

bool Planted(std::string_view name) { return name == Chosen(); }

}  // namespace fencepost
