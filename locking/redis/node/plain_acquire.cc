#include "locking/redis/node/plain_acquire.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>

#include "locking/base/check.h"
#include "locking/base/planted.h"
#include "locking/redis/session/node_probe.h"

namespace fencepost::locking {
namespace {

// What is added to the deadline, so that it is seldom sooner than the script's would be. A call
// that took longer than this says too little of the node's clock.
constexpr Millis kMargin{20};
constexpr Millis kEstimateValid{10'000};  // in which a slewed clock moves by 5 ms (500 ppm)
constexpr Millis kMostTooLate{1'000};
// After names that were not free, more of their kind are likely; each costs a call more. From one
// in so many on, all are left to the script for some turns.
constexpr std::size_t kOneTakenOf = 16;
constexpr int kScriptTurns = 8;

}  // namespace

void PlainAcquire::OnCall(const CallInfo& call) { last_ = call; }

void PlainAcquire::OnSentinel(std::optional<std::string_view> text) {
  if (text && !sentinel_text_.empty() && *text == sentinel_text_) return;
  sentinel_text_ = text.value_or("");
  sentinel_ = Sentinel::Decode(sentinel_text_);
  if (sentinel_ && !sentinel_->complete) sentinel_.reset();
}

void PlainAcquire::Forget() { *this = PlainAcquire(); }

WallTime PlainAcquire::NodeTime(Instant at) const {
  const Instant middle = last_->sent_at + (last_->received_at - last_->sent_at) / 2;
  return last_->node_time + std::chrono::floor<Millis>(at - middle);
}

bool PlainAcquire::Suits(std::span<const Op> ops, const LockOptions& options, Now now) {
  if (ops.empty() || !sentinel_ || !last_) return false;
  if (last_->received_at - last_->sent_at > kMargin) return false;
  if (now.boot - last_->received_at > kEstimateValid) return false;
  const WallTime node = NodeTime(now.boot);
  const bool comfortable = std::ranges::all_of(ops, [&](const Op& op) {
    return op.ttl > Millis(0) && op.ttl <= sentinel_->max_ttl &&
           (std::chrono::abs(op.token.wall() - node) < options.max_skew / 2 ||
            Planted("plain_acquire_of_any_token"));
  });
  if (!comfortable) return false;
  if (script_turns_ == 0) return true;
  --script_turns_;
  return false;
}

std::size_t PlainAcquire::Write(std::span<const Op> ops, const LockOptions& options, Now now,
                                std::string& out) {
  FENCEPOST_CHECK(last_ && sentinel_, "acquires that do not suit");
  node_time_ = NodeTime(now.boot);
  FormatPlainAcquires(ops, node_time_ + kMargin, options, out);
  asked_ = ops.size();
  answered_ = 0;
  written_.clear();
  trouble_.clear();
  return asked_ + 2;
}

bool PlainAcquire::OnAnswer(const redisReply& reply) {
  const std::size_t question = answered_++;
  FENCEPOST_CHECK(question < asked_ + 2, "unexpected reply: no request is outstanding");
  if (question < asked_) {
    written_.push_back(reply.type == REDIS_REPLY_NIL);
    return false;
  }
  if (reply.type == REDIS_REPLY_ERROR) {
    if (trouble_.empty()) trouble_ = TextOf(reply);
  } else if (question == asked_) {
    const bool text = reply.type == REDIS_REPLY_STRING;
    OnSentinel(text ? std::optional(TextOf(reply)) : std::nullopt);
  } else if (const auto time = TimeOf(reply)) {
    read_time_ = *time;
  } else if (trouble_.empty()) {
    trouble_ = "TIME was not answered as Redis does";
  }
  return answered_ == asked_ + 2;
}

void PlainAcquire::OnNils(std::size_t nils) {
  FENCEPOST_CHECK(nils <= NamesLeft(), "more answers than names");
  answered_ += nils;
  written_.insert(written_.end(), nils, true);
}

const PlainAcquire::Judgement& PlainAcquire::Judge(std::span<const Op> ops,
                                                   const LockOptions& options) {
  FENCEPOST_CHECK(ops.size() == asked_ && answered_ == asked_ + 2, "not all answers are there");
  judgement_.error = trouble_;
  judgement_.fates.clear();
  judgement_.refusal.clear();
  judgement_.no_sentinel = !sentinel_;
  if (!trouble_.empty() || !sentinel_) return judgement_;
  judgement_.header = {.node_time = read_time_,
                       .quarantined = read_time_ < sentinel_->quarantine_until};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    judgement_.fates.push_back(written_[i] ? Judge(ops[i], options) : Fate::kAskScript);
  }
  const auto taken = static_cast<std::size_t>(std::ranges::count(written_, false));
  if (taken * kOneTakenOf >= ops.size() && taken > 0) script_turns_ = kScriptTurns;
  return judgement_;
}

// TIME and the sentinel were read after the write: what they say was so at the write, or later.
PlainAcquire::Fate PlainAcquire::Judge(const Op& op, const LockOptions& options) {
  const Millis left = node_time_ + op.ttl + kMargin - read_time_;
  const bool counts = std::chrono::abs(op.token.wall() - read_time_) <= options.max_skew &&
                      left <= op.ttl + kMostTooLate && op.ttl <= sentinel_->max_ttl;
  if (!counts && !Planted("plain_grant_counts_by_any_clock")) {
    judgement_.refusal =
        fmt::format("an acquire was taken back: the node's clock went {} ms while it was asked",
                    (read_time_ - node_time_).count());
    return Fate::kRefused;
  }
  return left < op.ttl && !Planted("short_plain_grant_stays") ? Fate::kLengthen : Fate::kGranted;
}

}  // namespace fencepost::locking
