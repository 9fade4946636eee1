// What dead_letter.max_consecutive promises of one worker: of the bad records that came after
// something took effect, so many become dead letters until something does again. (What came before
// may all go out.)
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace fencepost::simulator {

class LettersInARow {
 public:
  void Delivered(const std::string& source) { since_.insert(source); }
  void TookEffect() {
    since_.clear();
    out_.clear();
  }
  // A dead letter goes out; how many in a row those are.
  std::size_t Out(const std::string& source) {
    if (since_.contains(source)) out_.insert(source);
    return out_.size();
  }

 private:
  std::set<std::string> since_;
  std::set<std::string> out_;
};

}  // namespace fencepost::simulator
