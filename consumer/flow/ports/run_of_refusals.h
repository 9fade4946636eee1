// Is it the record or the service? One rule for all who ask: while few records in a row are
// refused, each is taken to be bad itself; of more than dead_letter.max_consecutive, with none
// accepted in between, the service (or the pipeline file) is taken to be at fault. A value; one
// thread.
#pragma once

#include <algorithm>
#include <cstddef>

namespace fencepost::consumer {

class RunOfRefusals {
 public:
  explicit RunOfRefusals(std::size_t most) : most_(most) {}  // dead_letter.max_consecutive; 0: any

  // So many further ones would be the records' own fault.
  [[nodiscard]] bool Believes(std::size_t more = 1) const {
    return most_ == 0 || count_ + more <= most_;
  }
  // Those that are not believed are not counted.
  void Count(std::size_t more = 1) {
    count_ = most_ == 0 ? count_ + more : std::min(count_ + more, most_);
  }
  void Fill() { count_ = most_; }                    // no further one is believed
  void End() { count_ = 0; }                         // a record was accepted
  void Forget(std::size_t some) { count_ -= some; }  // that were counted
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool unlimited() const { return most_ == 0; }

 private:
  std::size_t most_;
  std::size_t count_ = 0;
};

}  // namespace fencepost::consumer
