// The JSON Schema (draft 2020-12) of the pipeline file, for editors; made from the same rows as the
// checks. It knows forms, not meanings: what it takes, lint may still refuse. Any thread.
#pragma once

#include <string>

namespace fencepost::config {

std::string JsonSchemaText();  // indented, with a line end

}  // namespace fencepost::config
