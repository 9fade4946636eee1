// Standard output of the demo: lines that stay and, on a terminal, a picture below them that is
// drawn again in place. It changes no setting of the terminal, so that it can end anywhere. One
// thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "consumer/cli/demo/picture.h"

namespace fencepost::cli {

class Screen {
 public:
  void Say(const std::string& line);
  // Where there is no picture: a line, when none was said for a second.
  void Show(const Picture& picture);
  // The picture stays as it is; what is said follows it.
  void Keep() { shown_.clear(); }

 private:
  // Goes back to where the picture begins, and clears what is below.
  [[nodiscard]] std::string Erase(int width) const;

  std::vector<std::string> shown_;
  std::chrono::steady_clock::time_point next_line_;
};

}  // namespace fencepost::cli
