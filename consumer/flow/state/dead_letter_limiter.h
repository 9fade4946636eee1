// How many dead letters may go out while nothing takes effect: what makes one record bad may make
// all of them bad (a mistake in the file, a topic of another format), and then the topic must not
// be emptied into its dead letters. Sans-IO, a value; one thread.
//
// Each dead letter that goes out is counted under its cause, until that cause is disproved: some
// record got past the step that the bad ones failed at. It goes out only as the oldest record of
// its partition, so that the offset passes it: a pipeline that is stopped then and mended does not
// find it again. When so many come without any success, further ones wait. One that was found bad
// before its cause was disproved, or in the same moment, goes out and is not counted.
//
// What disproves which cause is the flow's to say:
// - An effect (rows that the output took) disproves all of them.
// - A duplicate that a ledger or a DONE mark knows shows that the file finds the records' ids, and
//   nothing of the output: nothing of it was written. But if the output itself found it, the
//   columns were looked at before, with this file, and found.
// - An id alone says nothing: a wrong record_id may find something here and there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

namespace fencepost::consumer {

// Where a record was found to be bad.
enum class LetterCause : std::uint8_t {
  kIdentity,  // record_id finds nothing in it
  kOutput,    // a column finds nothing in it, or the output does not take it
};

class DeadLetterLimiter {
 public:
  using Turn = std::uint64_t;  // how often a cause was disproved

  explicit DeadLetterLimiter(std::size_t most) : most_(most) {}  // dead_letter.max_consecutive

  // To be kept for a record that is found bad now.
  [[nodiscard]] Turn Now(LetterCause cause) const { return turns_[Place(cause)]; }
  // Whether the dead letter of one that was found bad then may go out. `oldest`: the offset passes
  // it then.
  [[nodiscard]] bool MayPass(LetterCause cause, Turn then, bool oldest) const {
    return Free(cause, then) || (oldest && !Full());
  }
  // It goes out, if it may, and is counted.
  bool Pass(LetterCause cause, Turn then, bool oldest) {
    if (!MayPass(cause, then, oldest)) return false;
    if (!Free(cause, then)) ++counts_[Place(cause)];
    return true;
  }
  // So many went out that further ones wait for some success.
  [[nodiscard]] bool Full() const { return most_ != 0 && in_a_row() >= most_; }

  void Disprove(LetterCause cause) { disproved_[Place(cause)] = true; }
  // The moment is over. True: something was disproved in it, and what waits may be asked again.
  bool EndMoment() {
    bool any = false;
    for (std::size_t cause = 0; cause < kCauses; ++cause) {
      if (!std::exchange(disproved_[cause], false)) continue;
      any = true;
      ++turns_[cause];
      counts_[cause] = 0;
    }
    return any;
  }

  // That went out, of causes that are not disproved since.
  [[nodiscard]] std::size_t in_a_row() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
  }

 private:
  static constexpr std::size_t kCauses = 2;
  [[nodiscard]] bool Free(LetterCause cause, Turn then) const {
    return most_ == 0 || then < turns_[Place(cause)];
  }
  static std::size_t Place(LetterCause cause) { return static_cast<std::size_t>(cause); }

  std::size_t most_;  // 0: no limit
  std::array<Turn, kCauses> turns_{};
  std::array<std::size_t, kCauses> counts_{};
  std::array<bool, kCauses> disproved_{};  // in this moment
};

}  // namespace fencepost::consumer
