// The settings of a pipeline file as /status and the status page show them: what the file gives,
// before ${…} is replaced, with secrets redacted.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/read/reader.h"

namespace fencepost::config {

// (path, text) in the schema's order; "(not shown)" for what the schema calls secret.
std::vector<std::pair<std::string, std::string>> RedactedSettings(const Values& values);

}  // namespace fencepost::config
