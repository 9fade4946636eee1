#include "tests/support/node_model.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::locking {
namespace {

using Unit = NodeModel::Unit;
using State = NodeModel::State;

bool HeldNow(const Unit& unit, WallTime now) {
  return unit.state == State::kHeld && now < unit.deadline;
}

bool HeldBy(const Unit& unit, const Op& op) {
  return unit.state == State::kHeld && unit.nonce == op.nonce;
}

void SayContended(const Unit& unit, WallTime now, Reply& reply) {
  reply.code = ReplyCode::kContended;
  reply.token = unit.token;
  reply.rest = unit.deadline - now;
}

void SayDone(const Unit& unit, WallTime now, Reply& reply) {
  reply.code = ReplyCode::kDone;
  reply.token = unit.token;
  reply.crc = unit.crc;
  reply.rest = std::max(Millis(0), unit.expires - now);
}

void SayStolen(const Unit& unit, Reply& reply) {
  reply.code = ReplyCode::kStolen;
  reply.token = unit.token;
}

Unit MakeHeld(const Op& op, Token floor, WallTime now, Millis max_skew) {
  Unit unit;
  unit.state = State::kHeld;
  unit.token = op.token;
  unit.nonce = op.nonce;
  unit.floor = floor;
  unit.deadline = now + op.ttl;
  unit.expires = unit.deadline + 2 * max_skew;
  return unit;
}

Unit MakeFree(Token floor, WallTime expires) {
  Unit unit;
  unit.state = State::kFree;
  unit.floor = floor;
  unit.expires = expires;
  return unit;
}

// Only the holder's own lock; what is DONE or another's stays.
void Free(const Op& op, WallTime now, Unit& unit, Reply& reply) {
  const bool held = unit.state == State::kHeld;
  if (HeldBy(unit, op) || (Planted("abort_frees_anothers") && op.kind == OpKind::kAbort && held) ||
      (Planted("release_by_name") && op.kind == OpKind::kRelease && held)) {
    reply.code = HeldNow(unit, now) ? ReplyCode::kFreed : ReplyCode::kExpired;
    unit = MakeFree(unit.floor, unit.expires);
  } else if (unit.state == State::kHeld || unit.state == State::kDone) {
    SayStolen(unit, reply);
  } else {
    reply.code = ReplyCode::kExpired;
  }
}

void Extend(const Op& op, WallTime now, Millis max_skew, Unit& unit, Reply& reply) {
  if (unit.state == State::kDone) {
    SayDone(unit, now, reply);
  } else if (unit.state == State::kHeld && unit.nonce != op.nonce) {
    SayStolen(unit, reply);
  } else if (HeldNow(unit, now)) {
    reply.code = ReplyCode::kExtended;
    unit.deadline = now + op.ttl;
    unit.expires = std::max(unit.expires, unit.deadline + 2 * max_skew);
  } else if (Planted("extend_creates_a_key") && unit.state == State::kAbsent) {
    reply.code = ReplyCode::kExtended;
    unit = MakeHeld(op, op.token, now, max_skew);
  } else {
    reply.code = ReplyCode::kExpired;
  }
}

void Fill(const Op& op, WallTime now, Millis max_skew, Unit& unit, Reply& reply) {
  if (unit.state == State::kDone) {
    SayDone(unit, now, reply);
  } else if (HeldNow(unit, now)) {
    if (unit.nonce == op.nonce) {
      reply.code = ReplyCode::kFilled;
    } else {
      SayContended(unit, now, reply);
    }
  } else {
    reply.code = ReplyCode::kFilled;
    const WallTime stands_until = unit.expires;
    unit = MakeHeld(op, std::max(unit.floor, op.token), now, max_skew);
    unit.expires = std::max(unit.expires, stands_until);
  }
}

void MarkDone(const Op& op, WallTime now, Millis max_skew, Millis max_ttl, Unit& unit,
              Reply& reply) {
  if (unit.state == State::kDone) {
    reply.token = unit.token;
    if (!IsOtherContent(unit.crc, op.crc)) {
      reply.code = ReplyCode::kAlreadyDone;
    } else {
      reply.code = ReplyCode::kConflict;
      reply.crc = unit.crc;
    }
    return;
  }
  reply.code = HeldBy(unit, op) && HeldNow(unit, now) ? ReplyCode::kMarked : ReplyCode::kMarkedLate;
  const WallTime stands_until = unit.expires;
  unit = {};
  unit.state = State::kDone;
  unit.token = std::min(op.token, Token::AtWall(now + max_skew));
  unit.crc = op.crc;
  unit.expires = now + op.ttl;
  if (op.ttl >= max_ttl + 2 * max_skew) unit.expires = std::max(unit.expires, stands_until);
}

void Forget(const Op& op, WallTime now, Millis max_skew, Unit& unit, Reply& reply) {
  if (unit.state == State::kDone) {
    reply.code = ReplyCode::kFreed;
    const Token floor = Planted("forget_drops_the_floor") ? Token() : unit.token;
    unit = MakeFree(floor, now + op.ttl + 2 * max_skew);
  } else if (HeldNow(unit, now)) {
    SayContended(unit, now, reply);
  } else {
    reply.code = ReplyCode::kExpired;
  }
}

void Inspect(WallTime now, const Unit& unit, Reply& reply) {
  switch (unit.state) {
    case State::kAbsent:
      reply.code = ReplyCode::kExpired;
      return;
    case State::kHeld:
      reply.code = ReplyCode::kContended;
      reply.token = unit.token;
      reply.rest = std::max(Millis(0), std::chrono::duration_cast<Millis>(unit.deadline - now));
      return;
    case State::kFree:
      reply.code = ReplyCode::kStale;
      reply.token = unit.floor;
      return;
    case State::kDone:
      SayDone(unit, now, reply);
      return;
    case State::kForeign:
      reply.code = ReplyCode::kForeign;
      return;
  }
}

std::int64_t Number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  FENCEPOST_CHECK(error == std::errc() && end == text.end(), text);
  return value;
}

std::string Bytes(const Nonce& nonce) {
  std::string bytes;
  for (const std::uint64_t half : nonce.bits) {
    for (int at = 7; at >= 0; --at) bytes.push_back(static_cast<char>(half >> (8 * at)));
  }
  return bytes;
}

}  // namespace

void NodeModel::Acquire(const Op& op, const Call& call, Unit& unit, Reply& reply) const {
  if (unit.state == State::kDone) {
    SayDone(unit, call.now, reply);
    return;
  }
  if (HeldBy(unit, op) && unit.token == op.token) {
    reply.code = ReplyCode::kGranted;
    return;
  }
  if (HeldNow(unit, call.now)) {
    SayContended(unit, call.now, reply);
    return;
  }
  const bool floor_stands = unit.state != State::kAbsent;
  if (floor_stands && op.token <= unit.floor) {
    reply.code = ReplyCode::kStale;
    reply.token = unit.floor;
  } else if (op.token.wall() > call.now + call.max_skew) {
    reply.code = ReplyCode::kRefusedAhead;
  } else if (op.token.wall() < call.now - call.max_skew) {
    reply.code = ReplyCode::kRefusedBehind;
  } else if (op.ttl > max_ttl_) {
    reply.code = ReplyCode::kRefusedTtl;
  } else {
    reply.code = unit.state == State::kHeld ? ReplyCode::kGrantedTakeover : ReplyCode::kGranted;
    unit = MakeHeld(op, op.token, call.now, call.max_skew);
  }
}

void NodeModel::ApplyOne(const Op& op, const Call& call, Unit& unit, Reply& reply) const {
  if (unit.state == State::kForeign) {
    reply.code = ReplyCode::kForeign;
    return;
  }
  switch (op.kind) {
    case OpKind::kAcquire:
      return Acquire(op, call, unit, reply);
    case OpKind::kExtend:
      return Extend(op, call.now, call.max_skew, unit, reply);
    case OpKind::kFill:
      return Fill(op, call.now, call.max_skew, unit, reply);
    case OpKind::kAbort:
    case OpKind::kRelease:
      return Free(op, call.now, unit, reply);
    case OpKind::kDone:
      return MarkDone(op, call.now, call.max_skew, max_ttl_, unit, reply);
    case OpKind::kForget:
      return Forget(op, call.now, call.max_skew, unit, reply);
    case OpKind::kInspect:
      return Inspect(call.now, unit, reply);
  }
}

void NodeModel::Apply(OpKind kind, std::span<const Op> ops, const LockOptions& options,
                      WallTime node_now, WallTime expiry_now, CallHeader* header,
                      std::vector<Reply>& replies) {
  const bool quarantined = Quarantined(node_now);
  if (complete_ && header != nullptr) *header = {node_now, quarantined};
  const Call call{node_now, options.max_skew};
  for (const Op& op : ops) {
    FENCEPOST_CHECK(op.kind == kind, "a batch holds one kind of operation");
    Reply& reply = replies.emplace_back();
    reply.lock = op.lock;
    reply.round = op.round;
    reply.kind = kind;
    if (!complete_) {
      reply.code = ReplyCode::kNoSentinel;
      continue;
    }
    reply.quarantined = quarantined;
    auto found = units_.find(op.name);
    if (found != units_.end() && expiry_now > found->second.expires) found->second = {};
    Unit absent;
    Unit& unit = found == units_.end() ? absent : found->second;
    ApplyOne(op, call, unit, reply);
    if (unit.state == State::kAbsent) {
      if (found != units_.end()) units_.erase(found);
    } else if (found == units_.end()) {
      units_.emplace(op.name, unit);
    }
  }
}

std::vector<Reply> NodeModel::Apply(OpKind kind, std::span<const Op> ops,
                                    const LockOptions& options, WallTime node_now,
                                    CallHeader* header) {
  std::vector<Reply> replies;
  replies.reserve(ops.size());
  Apply(kind, ops, options, node_now, node_now, header, replies);
  return replies;
}

Reply NodeModel::AcquirePlainly(const Op& op, const LockOptions& options, WallTime deadline,
                                WallTime node_now, CallHeader* header) {
  if (Look(op.name, node_now).state != State::kAbsent) {
    return Apply(op.kind, {&op, 1}, options, node_now, header).at(0);
  }
  Unit& unit = units_[std::string(op.name)];
  unit = MakeHeld(op, op.token, node_now, options.max_skew);
  unit.deadline = deadline;
  unit.expires = deadline + 2 * options.max_skew;
  Reply reply{.lock = op.lock, .round = op.round, .kind = op.kind, .code = ReplyCode::kNoSentinel};
  if (!complete_) return reply;
  reply.quarantined = Quarantined(node_now);
  if (header != nullptr) *header = {node_now, reply.quarantined};
  const bool counts = op.token.wall() <= node_now + options.max_skew &&
                      op.token.wall() >= node_now - options.max_skew && op.ttl <= max_ttl_;
  reply.code = counts ? ReplyCode::kGranted : ReplyCode::kError;
  return reply;
}

std::optional<std::string> NodeModel::ApplySentinelWrite(const SentinelWrite& write,
                                                         WallTime node_now) {
  if (sentinel_ != write.expected && !Planted("sentinel_written_over_anything")) return sentinel_;
  std::string text = write.replacement;
  if (write.quarantine_for) {
    const WallTime until = node_now + *write.quarantine_for;
    text.replace(locking::kSentinelQuarantineAt, 13,
                 fmt::format("{:013}", until.time_since_epoch().count()));
  }
  SetSentinel(std::move(text));
  return sentinel_;
}

void NodeModel::SetSentinel(std::optional<std::string> text) {
  sentinel_ = std::move(text);
  complete_ = sentinel_ && sentinel_->starts_with('C');
  quarantine_until_ = {};
  max_ttl_ = {};
  if (!complete_) return;
  FENCEPOST_CHECK(sentinel_->size() >= locking::kSentinelSize, *sentinel_);
  const std::string_view view = *sentinel_;
  quarantine_until_ = WallTime(Millis(Number(view.substr(locking::kSentinelQuarantineAt, 13))));
  max_ttl_ = Millis(Number(view.substr(locking::kSentinelSize - 8, 8)));
}

void NodeModel::PutForeign(std::string_view name) {
  Unit& unit = units_[std::string(name)];
  unit = {};
  unit.state = State::kForeign;
  unit.expires = WallTime::max();
}

void NodeModel::Remove(std::string_view name) {
  if (const auto found = units_.find(name); found != units_.end()) units_.erase(found);
}

void NodeModel::SetExpiry(std::string_view name, WallTime expires) {
  if (const auto found = units_.find(name); found != units_.end()) found->second.expires = expires;
}

void NodeModel::RemoveSentinel() { SetSentinel(std::nullopt); }

void NodeModel::Wipe() {
  units_.clear();
  SetSentinel(std::nullopt);
}

void NodeModel::Restart(std::string run_id, bool keep_data) {
  run_id_ = std::move(run_id);
  if (!keep_data) Wipe();
}

Unit NodeModel::Look(std::string_view name, WallTime node_now) const {
  const auto found = units_.find(name);
  if (found == units_.end() || node_now > found->second.expires) return {};
  return found->second;
}

std::optional<Unit> NodeModel::Holder(std::string_view name, WallTime node_now) const {
  const Unit unit = Look(name, node_now);
  return HeldNow(unit, node_now) ? std::optional(unit) : std::nullopt;
}

void NodeModel::Purge(WallTime node_now) {
  std::erase_if(units_, [&](const auto& entry) { return node_now > entry.second.expires; });
}

std::string NodeModel::Encode(const Unit& unit) {
  switch (unit.state) {
    case State::kAbsent:
      return {};
    case State::kHeld: {
      const std::string floor =
          unit.floor == unit.token ? "" : fmt::format("{:016x}", unit.floor.value());
      return fmt::format("H{:011x}{:016x}{}{}", unit.deadline.time_since_epoch().count(),
                         unit.token.value(), Bytes(unit.nonce), floor);
    }
    case State::kFree:
      return fmt::format("F{:016x}", unit.floor.value());
    case State::kDone:
      return fmt::format("D{:016x}{:016x}", unit.token.value(), unit.crc);
    case State::kForeign:
      return "?";
  }
  return {};
}

}  // namespace fencepost::locking
