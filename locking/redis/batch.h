// One batch of operations that is out at one node: cut into script calls, answered call by call,
// with exactly one reply an operation whatever happens. Sans-IO; buffers are reused from batch to
// batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "locking/core/ops.h"
#include "locking/core/options.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {

class Batch {
 public:
  // Ops are taken and their replies were not handed back yet.
  [[nodiscard]] bool Active() const { return !ops_.empty(); }
  // Fill while not active, then Cut.
  std::vector<Op>& ops() { return ops_; }
  void Cut();

  // Appends every call that is not settled, in order; returns how many answers will come.
  std::size_t Write(const LockOptions& options, std::string& out);

  struct Call {
    OpKind kind;
    std::size_t keys;
  };
  // The next answer belongs to this call.
  [[nodiscard]] Call Next() const;
  // The next call's answer. The header, or why the text is not one; then its ops get kError.
  tl::expected<CallHeader, std::string> OnText(std::string_view text);
  void OnError(ReplyCode code);
  // The node has lost the scripts: the call may be written again. False when it already was; then
  // its ops get kError.
  bool OnNoScript();

  // All answers of the last Write are there, and some calls wait to be written again. A call that a
  // later one has overtaken is not, when its operations must not come late; these get kError.
  [[nodiscard]] bool PrepareResend();
  [[nodiscard]] std::size_t CallsUnsettled() const;
  void SettleRest(ReplyCode code);

  // All replies, once everything is settled. Then Clear.
  [[nodiscard]] const std::vector<Reply>& replies() const;
  void Clear();

 private:
  enum class State : std::uint8_t { kUnsettled, kNoScript, kSettled };
  struct Run {  // ops_[first, first + count), all of one kind: one script call
    OpKind kind;
    State state = State::kUnsettled;
    bool again = false;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] std::span<const Op> OpsOf(const Run& run) const;
  Run& TakeNext();
  void Settle(Run& run, ReplyCode code);

  std::vector<Op> ops_;
  std::vector<Run> runs_;
  std::vector<std::size_t> written_;  // runs of the last Write, in order
  std::size_t answered_ = 0;          // of these
  std::vector<Reply> replies_;
};

}  // namespace fencepost::locking
