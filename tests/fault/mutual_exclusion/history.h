// The run as the outside saw it: what each worker asked, when, and when it had which answer. One
// operation a line, as JSON, for the program in linearizability/, whose head says what it makes of
// them. Times are CLOCK_BOOTTIME in ns. An operation without "return" has no answer: its worker was
// killed.
//
//   {"object":"counter","name":0,"what":"read","token":7,"admitted":true,"answer":3,
//    "call":100,"return":120}
//   {"object":"counter","name":0,"what":"write","token":7,"value":4,"admitted":true,"answer":4, …}
//   {"object":"lock","name":0,"what":"acquire","token":7,"call":50,"return":90}
//   {"object":"lock","name":0,"what":"end","token":7,"call":400}    not before 400
//
// What is not in it: an acquire that came to nothing, or that its worker did not live to see.
#pragma once

#include <string>
#include <vector>

#include "tests/fault/mutual_exclusion/journal.h"

namespace fencepost::torture {

class History {
 public:
  // All that one process wrote down.
  void Hear(const std::vector<Entry>& journal);
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  void WriteTo(const std::string& path) const;  // throws std::runtime_error

 private:
  void AddLeases(const std::vector<Entry>& journal);
  void AddRequests(const std::vector<Entry>& journal);

  std::vector<std::string> lines_;
};

}  // namespace fencepost::torture
