// How many dead letters may go out while nothing takes effect: what makes one record bad may make
// all of them bad (a mistake in the file, a topic of another format), and then the topic must not
// be emptied into its dead letters. Sans-IO, a value; one thread.
//
// Each dead letter that goes out is counted under its cause, until that cause is disproved: some
// record got past the step that the bad ones failed at. It goes out only as the oldest record of
// its partition, so that the offset passes it: a pipeline that is stopped then and mended does not
// find it again. When so many come without any success, further ones wait. One that was found bad
// before its cause was disproved, or in the same moment, goes out and is not counted. (What a
// handler refuses is counted at once, in the order of its answers; beyond the limit the handler is
// asked again instead, HandlerCalls.)
//
// What disproves which cause is the flow's to say:
// - An effect (rows that the output took) disproves all of them.
// - A duplicate that a ledger or a DONE mark knows shows that the file finds the records' ids, and
//   nothing of the output: nothing of it was written. But if the output itself found it, the
//   columns were looked at before, with this file, and found.
// - A record that makes no row disproves kUnread and kIdentity: it is in conflict with none.
// - A filtered record disproves kUnread.
// - A handler's success lifts kHandler, while the output has refused none since the last effect.
// When
//   it refuses what the handler answered, that counts again.
// - An id alone says nothing: a wrong record_id may find something here and there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "consumer/flow/ports/run_of_refusals.h"

namespace fencepost::consumer {

// Where a record was found to be bad.
enum class LetterCause : std::uint8_t {
  kUnread,    // it cannot be decoded, or `when` cannot be asked of it (Record::problem)
  kIdentity,  // record_id finds nothing in it
  kConflict,  // … or an id that was processed with other content
  kHandler,   // the handler, or the service behind it, refuses it or failed for too long
  kOutput,    // a column finds nothing in it, or the output does not take it
};

class DeadLetterLimiter {
 public:
  using Turn = std::uint64_t;  // how often a cause was disproved

  explicit DeadLetterLimiter(std::size_t most) : run_(most) {}  // RunOfRefusals

  // To be kept for a record that is found bad now.
  [[nodiscard]] Turn Now(LetterCause cause) const { return Of(cause).turn; }
  // Whether the dead letter of one that was found bad then may go out. `oldest`: the offset passes
  // it then.
  [[nodiscard]] bool MayPass(LetterCause cause, Turn then, bool oldest) const {
    return Free(cause, then) || (oldest && !Full());
  }
  // It is disproved since, or nothing is counted.
  [[nodiscard]] bool Free(LetterCause cause, Turn then) const {
    return run_.unlimited() || then < Of(cause).turn;
  }
  // It goes out, if it may, and is counted.
  bool Pass(LetterCause cause, Turn then, bool oldest) {
    if (!MayPass(cause, then, oldest)) return false;
    if (Free(cause, then)) return true;
    ++Of(cause).count;
    run_.Count();
    return true;
  }
  // So many went out that further ones wait for some success.
  [[nodiscard]] bool Full() const { return !run_.Believes(); }

  void Disprove(LetterCause cause) { Of(cause).disproved = true; }
  // The handler succeeded.
  void OnAnswer() {
    Cause& handler = Of(LetterCause::kHandler);
    if (output_refuses_ || handler.count == 0) return;
    run_.Forget(handler.count);
    lifted_ += std::exchange(handler.count, 0);
    any_lifted_ = true;
  }
  // The output refuses a record.
  void OnOutputRefuses() {
    output_refuses_ = true;
    for (; lifted_ > 0 && !Full(); --lifted_) {
      ++Of(LetterCause::kHandler).count;
      run_.Count();
    }
    lifted_ = 0;
  }
  // The moment is over. True: something was disproved in it, and what waits may be asked again.
  bool EndMoment() {
    bool any = std::exchange(any_lifted_, false);
    if (Of(LetterCause::kHandler).disproved) lifted_ = 0;
    if (Of(LetterCause::kOutput).disproved) output_refuses_ = false;
    for (Cause& cause : causes_) {
      if (!std::exchange(cause.disproved, false)) continue;
      any = true;
      ++cause.turn;
      run_.Forget(std::exchange(cause.count, 0));
    }
    return any;
  }

  // That went out, of causes that are not disproved since.
  [[nodiscard]] std::size_t in_a_row() const { return run_.count(); }

 private:
  struct Cause {
    Turn turn = 0;
    std::size_t count = 0;   // of run_
    bool disproved = false;  // in this moment
  };
  [[nodiscard]] const Cause& Of(LetterCause cause) const {
    return causes_[static_cast<std::size_t>(cause)];
  }
  Cause& Of(LetterCause cause) { return causes_[static_cast<std::size_t>(cause)]; }

  RunOfRefusals run_;
  std::array<Cause, 5> causes_{};
  bool output_refuses_ = false;  // since the last effect
  std::size_t lifted_ = 0;       // of kHandler, by successes since then
  bool any_lifted_ = false;      // in this moment
};

}  // namespace fencepost::consumer
