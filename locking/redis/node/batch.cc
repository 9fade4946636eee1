#include "locking/redis/node/batch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::locking {
namespace {

// Ends what such an operation would begin or keep.
constexpr bool Ends(OpKind kind) { return !MustNotComeLate(kind) && kind != OpKind::kInspect; }

// What an extension says of a name that its plain acquire has just taken.
void BecomeAcquired(Reply& reply) {
  reply.kind = OpKind::kAcquire;
  if (reply.code == ReplyCode::kExtended) {
    reply.code = ReplyCode::kGranted;
  } else if (reply.code != ReplyCode::kDone) {  // gone, or another's: to be taken back
    reply = {
        .lock = reply.lock, .round = reply.round, .kind = reply.kind, .code = ReplyCode::kError};
  }
}

}  // namespace

void NodeBatch::Cut() {
  FENCEPOST_CHECK(runs_.empty() && replies_.empty() && ops_.size() <= kMaxBatch,
                  fmt::format("{} runs, {} ops", runs_.size(), ops_.size()));
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (runs_.empty() || runs_.back().kind != ops_[i].kind) {
      runs_.push_back({.kind = ops_[i].kind, .first = i});
    }
    ++runs_.back().count;
  }
}

std::span<const Op> NodeBatch::OpsOf(const Run& run) const {
  return std::span(ops_).subspan(run.first, run.count);
}

std::span<const Op> NodeBatch::OpsForLengthening(const Run& run) {
  const std::span<const Op> ops = OpsOf(run);
  scratch_.assign(ops.begin(), ops.end());
  for (Op& op : scratch_) op.kind = OpKind::kExtend;
  return scratch_;
}

// What is resent after it must not follow the end of the same attempt.
bool NodeBatch::MayGoPlain(std::size_t run) const {
  const Run& plain = runs_[run];
  return plain.kind == OpKind::kAcquire && plain.may_go_plain && !plain.again &&
         std::none_of(runs_.begin() + static_cast<std::ptrdiff_t>(run), runs_.end(),
                      [](const Run& later) {
                        return Ends(later.kind) && !Planted("plain_acquire_after_its_abort");
                      });
}

std::size_t NodeBatch::Write(const LockOptions& options, std::string& out, PlainAcquire* plain,
                             Now now) {
  written_.clear();
  answered_ = 0;
  std::size_t answers = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (run.state == State::kSettled) continue;
    run.again = run.state == State::kNoScript;
    run.state = State::kUnsettled;
    written_.push_back(i);
    if (plain != nullptr && MayGoPlain(i) && plain->Suits(OpsOf(run), options, now)) {
      run.way = Way::kPlain;
      answers += plain->Write(OpsOf(run), options, now, out);
      plain = nullptr;
    } else if (run.way == Way::kLengthen) {
      FormatCall(OpKind::kExtend, OpsForLengthening(run), options, out);
      ++answers;
    } else {
      FormatCall(run.kind, OpsOf(run), options, out);
      ++answers;
    }
  }
  return answers;
}

NodeBatch::Call NodeBatch::Next() const {
  FENCEPOST_CHECK(answered_ < written_.size(), "an answer without a call");
  const Run& run = runs_[written_[answered_]];
  return {run.kind, run.count};
}

NodeBatch::Run& NodeBatch::TakeNext() {
  FENCEPOST_CHECK(answered_ < written_.size(), "an answer without a call");
  return runs_[written_[answered_++]];
}

tl::expected<CallHeader, std::string> NodeBatch::OnText(std::string_view text) {
  Run& run = TakeNext();
  const bool lengthened = run.way == Way::kLengthen;
  auto header = lengthened ? ParseCall(OpKind::kExtend, OpsForLengthening(run), text, replies_)
                           : ParseCall(run.kind, OpsOf(run), text, replies_);
  if (header && lengthened) {
    std::for_each(replies_.end() - static_cast<std::ptrdiff_t>(run.count), replies_.end(),
                  BecomeAcquired);
  }
  if (header) {
    run.state = State::kSettled;
  } else {
    Settle(run, ReplyCode::kError);
  }
  return header;
}

void NodeBatch::OnError(ReplyCode code) { Settle(TakeNext(), code); }

bool NodeBatch::NextIsPlain() const {
  return answered_ < written_.size() && runs_[written_[answered_]].way == Way::kPlain;
}

const PlainAcquire::Judgement& NodeBatch::OnPlain(PlainAcquire& plain, const LockOptions& options) {
  Run& run = TakeNext();
  FENCEPOST_CHECK(run.way == Way::kPlain, "a judgement of what was not asked plainly");
  const PlainAcquire::Judgement& judgement = plain.Judge(OpsOf(run), options);
  if (!judgement.error.empty()) {
    Settle(run, ReplyCode::kError);
  } else if (judgement.no_sentinel) {
    Settle(run, ReplyCode::kNoSentinel);
  } else {
    const std::size_t before = replies_.size();
    run.state = State::kSettled;
    Split(run, judgement.fates);
    for (std::size_t i = before; i < replies_.size(); ++i) {
      replies_[i].quarantined =
          judgement.header.quarantined && !Planted("plain_grant_counts_in_quarantine");
    }
  }
  return judgement;
}

// Sorts its operations by their fates; those that are sent again become runs of their own. `run` is
// an element of runs_, and invalid afterwards.
void NodeBatch::Split(Run& run, const std::vector<PlainAcquire::Fate>& fates) {
  using Fate = PlainAcquire::Fate;
  const std::span<const Op> ops = OpsOf(run);
  scratch_.clear();
  const std::size_t first = run.first;
  if (std::ranges::all_of(fates, [](Fate fate) { return fate == Fate::kGranted; })) {
    Settle(run, ReplyCode::kGranted);
    return;
  }
  const auto gather = [&](Fate fate) {
    const std::size_t before = scratch_.size();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (fates[i] == fate) scratch_.push_back(ops[i]);
    }
    return Run{
        .kind = OpKind::kAcquire, .first = first + before, .count = scratch_.size() - before};
  };
  const auto settle = [&](Fate fate, ReplyCode code) {
    const Run settled = gather(fate);
    for (std::size_t i = scratch_.size() - settled.count; i < scratch_.size(); ++i) {
      replies_.push_back(ReplyTo(scratch_[i], code));
    }
  };
  settle(Fate::kGranted, ReplyCode::kGranted);
  settle(Fate::kRefused, ReplyCode::kError);
  Run asked = gather(Fate::kAskScript);
  Run lengthened = gather(Fate::kLengthen);
  lengthened.way = Way::kLengthen;
  std::copy(scratch_.begin(), scratch_.end(), ops_.begin() + static_cast<std::ptrdiff_t>(first));
  asked.may_go_plain = lengthened.may_go_plain = false;
  run.count -= asked.count + lengthened.count;
  if (asked.count > 0) runs_.push_back(asked);
  if (lengthened.count > 0) runs_.push_back(lengthened);
}

bool NodeBatch::OnNoScript() {
  Run& run = TakeNext();
  if (run.again) {
    Settle(run, ReplyCode::kError);
    return false;
  }
  run.state = State::kNoScript;
  return true;
}

bool NodeBatch::PrepareResend() {
  bool overtaken = false;
  bool any = false;
  for (std::size_t i = runs_.size(); i-- > 0;) {
    Run& run = runs_[i];
    if (run.state == State::kSettled) {
      overtaken = overtaken || Ends(run.kind);
    } else if (overtaken && MustNotComeLate(run.kind) && !Planted("resent_behind_its_end")) {
      Settle(run, ReplyCode::kError);
    } else {
      any = true;
    }
  }
  return any;
}

std::size_t NodeBatch::CallsUnsettled() const {
  return runs_.size() -
         static_cast<std::size_t>(std::ranges::count(runs_, State::kSettled, &Run::state));
}

void NodeBatch::SettleRest(ReplyCode code) {
  for (Run& run : runs_) {
    if (run.state != State::kSettled) Settle(run, code);
  }
}

void NodeBatch::Settle(Run& run, ReplyCode code) {
  for (const Op& op : OpsOf(run)) replies_.push_back(ReplyTo(op, code));
  run.state = State::kSettled;
}

const std::vector<Reply>& NodeBatch::replies() const {
  FENCEPOST_CHECK(replies_.size() == ops_.size(),
                  fmt::format("{} replies for {} ops", replies_.size(), ops_.size()));
  return replies_;
}

void NodeBatch::Clear() {
  ops_.clear();
  runs_.clear();
  written_.clear();
  answered_ = 0;
  replies_.clear();
}

}  // namespace fencepost::locking
