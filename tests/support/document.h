// Figures that a document states, for the test that measures them.
#pragma once

#include <regex>
#include <stdexcept>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::testing {

// The number in the one place where `pattern` matches, which has it as its only group.
inline double Stated(const std::string& document, const std::string& pattern) {
  const std::string text = ReadFile(SourcePath(document));
  const std::regex regex(pattern);
  const std::sregex_iterator first(text.begin(), text.end(), regex);
  if (first == std::sregex_iterator() || std::next(first) != std::sregex_iterator()) {
    throw std::runtime_error(document + " does not say '" + pattern + "' once");
  }
  return std::stod((*first)[1].str());
}

}  // namespace fencepost::testing
