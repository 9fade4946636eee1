// Asks the program in linearizability/, which tests/support/fetch-linearizability builds with Go.
#pragma once

#include <string>

namespace fencepost::torture {

enum class Verdict {
  kLinearizable,
  kNotLinearizable,
  kNotDecided,  // the search took too long
};

struct Checked {
  Verdict verdict = Verdict::kNotDecided;
  std::string text;  // what the program said
};

// "": the program is there, built when this is first asked. Else why it cannot be had here: no Go,
// or no network. Throws std::runtime_error when it is not built for another reason.
const std::string& WhyNotChecked();

// A file of history.h, where WhyNotChecked is "". Throws std::runtime_error when the program fails.
Checked CheckHistory(const std::string& path);

}  // namespace fencepost::torture
