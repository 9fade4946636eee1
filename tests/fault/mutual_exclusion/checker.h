// Asks the program in linearizability/, which tests/support/fetch-linearizability builds with Go.
#pragma once

#include <string>

namespace fencepost::torture {

enum class Verdict {
  kLinearizable,
  kNotLinearizable,
  kNotChecked,  // no Go here, or its module cannot be downloaded
};

struct Checked {
  Verdict verdict = Verdict::kNotChecked;
  std::string text;  // what the program said
};

// A file of history.h. Throws std::runtime_error when the program fails.
Checked CheckHistory(const std::string& path);

}  // namespace fencepost::torture
