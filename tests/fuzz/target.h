// What all fuzz targets share. A target is one function of a folder of its own: it gives bytes to
// what the product parses them with, and checks (FENCEPOST_CHECK, which aborts) what holds for all
// bytes. The same function is run by libFuzzer, and by replay.cc in the ordinary build.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "locking/base/check.h"

namespace fencepost::fuzz {

// The target. It keeps nothing from one call to the next that could change what the next one does.
void OneInput(std::string_view input);

// An input made of several parts: a line each, without its '\n', and the rest.
class Parts {
 public:
  explicit Parts(std::string_view input) : rest_(input) {}
  std::string_view Line();
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// UTF-8 without controls (C0, DEL, C1): fit for a terminal and a log.
bool IsOneLine(std::string_view text);
// Bytes as they can be printed, for the message of a check.
std::string Shown(std::string_view bytes);

}  // namespace fencepost::fuzz
