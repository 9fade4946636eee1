// REFERENCE.md, made from the schema.
#pragma once

#include <string>

namespace fencepost::config {

std::string ReferenceMarkdown();

}  // namespace fencepost::config
