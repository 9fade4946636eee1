#include "locking/redis/batch.h"

#include <utility>

#include <fmt/format.h>

#include "locking/check.h"

namespace fencepost::locking {
namespace {

constexpr bool MustNotComeLate(OpKind kind) {
  return kind == OpKind::kAcquire || kind == OpKind::kExtend || kind == OpKind::kFill;
}

}  // namespace

void Batch::Cut() {
  FENCEPOST_CHECK(runs_.empty() && replies_.empty() && ops_.size() <= kMaxBatch,
                  fmt::format("{} runs, {} ops", runs_.size(), ops_.size()));
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (runs_.empty() || runs_.back().kind != ops_[i].kind) {
      runs_.push_back({.kind = ops_[i].kind, .first = i});
    }
    ++runs_.back().count;
  }
}

std::span<const Op> Batch::OpsOf(const Run& run) const {
  return std::span(ops_).subspan(run.first, run.count);
}

std::size_t Batch::Write(const LockOptions& options, std::string& out) {
  written_.clear();
  answered_ = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (run.state == State::kSettled) continue;
    run.again = run.state == State::kNoScript;
    run.state = State::kUnsettled;
    FormatCall(run.kind, OpsOf(run), options, out);
    written_.push_back(i);
  }
  return written_.size();
}

Batch::Call Batch::Next() const {
  FENCEPOST_CHECK(answered_ < written_.size(), "an answer without a call");
  const Run& run = runs_[written_[answered_]];
  return {run.kind, run.count};
}

Batch::Run& Batch::TakeNext() {
  FENCEPOST_CHECK(answered_ < written_.size(), "an answer without a call");
  return runs_[written_[answered_++]];
}

tl::expected<CallHeader, std::string> Batch::OnText(std::string_view text) {
  Run& run = TakeNext();
  auto header = ParseCall(run.kind, OpsOf(run), text, replies_);
  if (header) {
    run.state = State::kSettled;
  } else {
    Settle(run, ReplyCode::kError);
  }
  return header;
}

void Batch::OnError(ReplyCode code) { Settle(TakeNext(), code); }

bool Batch::OnNoScript() {
  Run& run = TakeNext();
  if (run.again) {
    Settle(run, ReplyCode::kError);
    return false;
  }
  run.state = State::kNoScript;
  return true;
}

bool Batch::PrepareResend() {
  bool overtaken = false;
  bool any = false;
  for (std::size_t i = runs_.size(); i-- > 0;) {
    Run& run = runs_[i];
    if (run.state == State::kSettled) {
      overtaken = true;
    } else if (overtaken && MustNotComeLate(run.kind)) {
      Settle(run, ReplyCode::kError);
    } else {
      any = true;
    }
  }
  return any;
}

std::size_t Batch::CallsUnsettled() const {
  std::size_t count = 0;
  for (const Run& run : runs_) count += run.state == State::kSettled ? 0 : 1;
  return count;
}

void Batch::SettleRest(ReplyCode code) {
  for (Run& run : runs_) {
    if (run.state != State::kSettled) Settle(run, code);
  }
}

void Batch::Settle(Run& run, ReplyCode code) {
  for (const Op& op : OpsOf(run)) {
    replies_.push_back({.lock = op.lock, .round = op.round, .kind = op.kind, .code = code});
  }
  run.state = State::kSettled;
}

const std::vector<Reply>& Batch::replies() const {
  FENCEPOST_CHECK(replies_.size() == ops_.size(),
                  fmt::format("{} replies for {} ops", replies_.size(), ops_.size()));
  return replies_;
}

void Batch::Clear() {
  ops_.clear();
  runs_.clear();
  written_.clear();
  answered_ = 0;
  replies_.clear();
}

}  // namespace fencepost::locking
