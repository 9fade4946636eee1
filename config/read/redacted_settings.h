// The settings of a pipeline file as people may see them (/status, the status page): what the file
// gives, before ${…} is replaced, without secrets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/read/reader.h"

namespace fencepost::config {

// (path, text) in the schema's order; "(not shown)" for what the schema calls secret.
std::vector<std::pair<std::string, std::string>> ShownSettings(const Values& values);

}  // namespace fencepost::config
