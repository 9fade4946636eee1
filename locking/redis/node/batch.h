// One batch of operations that is outstanding at one node: split into script calls, answered call
// by call, with exactly one reply per operation whatever happens. Sans-IO; buffers are reused from
// batch to batch.
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
#include "locking/redis/node/plain_acquire.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {

class NodeBatch {
 public:
  // Ops are taken and their replies were not handed back yet.
  [[nodiscard]] bool Active() const { return !ops_.empty(); }
  // Fill while not active, then Cut.
  std::vector<Op>& ops() { return ops_; }
  void Cut();

  // Appends every call that is not settled, in order; returns how many answers will come. Acquires
  // that suit `plain` go as plain commands, the first time; null: none.
  std::size_t Write(const LockOptions& options, std::string& out, PlainAcquire* plain = nullptr,
                    Now now = {});

  struct Call {
    OpKind kind;
    std::size_t keys;
  };
  // The next answer belongs to this call.
  [[nodiscard]] Call Next() const;
  // The next call's answer. The header, or why the text is not one; then its ops get kError.
  tl::expected<CallHeader, std::string> OnText(std::string_view text);
  void OnError(ReplyCode code);
  // The next answers are those to plain commands: PlainAcquire takes them, and judges.
  [[nodiscard]] bool NextIsPlain() const;
  // Settles what it can; the others wait to be written again, as calls.
  const PlainAcquire::Judgement& OnPlain(PlainAcquire& plain, const LockOptions& options);
  // The node has lost the scripts: the call may be written again. False when it already was; then
  // its ops get kError.
  bool OnNoScript();

  // All answers of the last Write are there, and some calls wait to be written again. A call that a
  // later one has overtaken which may end what it begins is not; its operations get kError.
  [[nodiscard]] bool PrepareResend();
  [[nodiscard]] std::size_t CallsUnsettled() const;
  void SettleRest(ReplyCode code);

  // All replies, once everything is settled. Then Clear.
  [[nodiscard]] const std::vector<Reply>& replies() const;
  void Clear();

 private:
  enum class State : std::uint8_t { kUnsettled, kNoScript, kSettled };
  // Acquires only: by plain commands; by a call of extend, which gives what these wrote a deadline
  // that is late enough.
  enum class Way : std::uint8_t { kScript, kPlain, kLengthen };
  struct Run {  // ops_[first, first + count), all of one kind: one script call, or plain commands
    OpKind kind;
    State state = State::kUnsettled;
    Way way = Way::kScript;
    bool may_go_plain = true;
    bool again = false;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] std::span<const Op> OpsOf(const Run& run) const;
  [[nodiscard]] std::span<const Op> OpsForLengthening(const Run& run);
  [[nodiscard]] bool MayGoPlain(std::size_t run) const;
  void Split(Run& run, const std::vector<PlainAcquire::Fate>& fates);
  Run& TakeNext();
  void Settle(Run& run, ReplyCode code);

  std::vector<Op> ops_;
  std::vector<Run> runs_;
  std::vector<std::size_t> written_;  // runs of the last Write, in order
  std::size_t answered_ = 0;          // of these
  std::vector<Reply> replies_;
  std::vector<Op> scratch_;
};

}  // namespace fencepost::locking
