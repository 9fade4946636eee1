// What a part of the tree says as a text: a scalar is its text, a map or a list its JSON (RFC 8259)
// in the file's order. In JSON, what is not quoted and looks like a number, true, false or null is
// that, and keeps its digits; everything else is a string. ${…} is replaced in values, never in
// keys. Values; any thread.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "config/read/tree.h"
#include "config/text/finding.h"
#include "config/text/variables.h"

namespace fencepost::config {

struct TextProblem {
  Place at;
  std::string_view rule;
  std::string message;
};

// Not for a null at the top: that is for the caller to mean something by.
tl::expected<std::string, TextProblem> NodeText(const Node& node, const Environment& environment);

}  // namespace fencepost::config
