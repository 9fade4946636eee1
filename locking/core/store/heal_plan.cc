// What one name needs. Nothing written is forgotten before what it was made from.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "locking/base/planted.h"
#include "locking/core/store/heal.h"

namespace fencepost::locking {
namespace {

using State = UnitValue::State;

// What the other nodes say of one name, together.
struct Testimony {
  bool any = false;
  Millis left{0};  // the longest memory of it
  Token floor;     // above every token granted there
  std::map<std::pair<Token, ContentCrc>, int> done;
  struct Holder {
    Token token;
    int nodes = 0;
    Millis rest{0};
  };
  std::map<Nonce, Holder> holders;  // live ones
  int for_anyone = 0;               // live ones that may be anybody's

  void Hear(const NodeSight::Value& seen, WallTime time) {
    const auto value = UnitValue::Decode(seen.raw);
    if (!value) return;
    any = true;
    left = std::max(left, seen.left);
    floor = std::max(floor, value->Highest());
    if (value->state == State::kDone) ++done[{value->token, value->crc}];
    if (!value->HeldAt(time)) return;
    if (value->nonce == kHeldForAnyone) {
      ++for_anyone;
      return;
    }
    Holder& holder = holders[value->nonce];
    holder.token = value->token;
    ++holder.nodes;
    holder.rest = std::max(holder.rest, value->deadline - time);
  }
};

HealWrite Write(const std::string& name, const NodeSight::Value& own, const UnitValue& value,
                Millis left) {
  return {name, own.raw, value.Encode(), std::max(left, own.left)};
}

// The mark that most nodes have.
UnitValue DoneOf(const Testimony& told) {
  const auto most =
      std::max_element(told.done.begin(), told.done.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return {.state = State::kDone, .token = most->first.first, .crc = most->first.second};
}

// Who may hold it by a quorum that counted the healed node before it forgot: that takes all but one
// of a quorum of the others.
std::vector<std::pair<Nonce, Testimony::Holder>> Candidates(const Testimony& told, int nodes) {
  const int needed = Quorum(nodes) - (Planted("healing_needs_a_whole_quorum") ? 0 : 1);
  std::vector<std::pair<Nonce, Testimony::Holder>> candidates;
  for (const auto& [nonce, holder] : told.holders) {
    if (holder.nodes + told.for_anyone >= needed) candidates.emplace_back(nonce, holder);
  }
  if (told.for_anyone >= needed && told.for_anyone > 0) {
    candidates.emplace_back(kHeldForAnyone, Testimony::Holder{});
  }
  return candidates;
}

// A lease from before the quarantine has ended when the quarantine would have: until then it keeps
// others out, whatever rest was read (an extension may have been under way). A later one is not
// over here before it is where it was read, since its client may ask again, and count this node:
// `own_time` was read after it, and is cut to the millisecond.
UnitValue HeldBy(const std::vector<std::pair<Nonce, Testimony::Holder>>& candidates, Token floor,
                 WallTime own_time, const HealRules& rules) {
  UnitValue value{.state = State::kHeld, .deadline = rules.quarantine_until, .floor = floor};
  // One that is given back counts as granted here if its client asks again (a resend), so it must
  // be one that this node would grant.
  const bool one = candidates.size() == 1 && candidates.front().first != kHeldForAnyone &&
                   candidates.front().second.token >= floor;
  if (one) {
    value.nonce = candidates.front().first;
    value.token = candidates.front().second.token;
    value.deadline =
        std::max(value.deadline, own_time + candidates.front().second.rest + Millis(1));
    return value;
  }
  value.nonce = kHeldForAnyone;
  value.token = value.floor = Token(floor.value() + 1);  // nobody's
  return value;
}

}  // namespace

std::optional<HealWrite> PlanHeal(const std::string& name, std::span<const NodeSight::Value> others,
                                  std::span<const WallTime> times, const NodeSight::Value& own,
                                  WallTime own_time, const HealRules& rules) {
  Testimony told;
  for (std::size_t i = 0; i < others.size(); ++i) told.Hear(others[i], times[i]);
  const auto mine = UnitValue::Decode(own.raw);
  if (!told.any || (!mine && !own.raw.empty())) return std::nullopt;
  const auto candidates = Candidates(told, rules.nodes);
  const auto forgotten_after = [&](WallTime deadline) {
    return std::max(told.left, deadline - own_time + 2 * rules.max_skew);
  };
  const bool done_there = mine && mine->state == State::kDone;
  if (done_there || !told.done.empty()) {
    const UnitValue value = done_there ? *mine : DoneOf(told);
    const Millis left = candidates.empty() ? told.left : forgotten_after(rules.quarantine_until);
    if (done_there && own.left >= left) return std::nullopt;
    return Write(name, own, value, left);
  }
  const Token floor = std::max(told.floor, mine ? mine->Highest() : Token());
  if (!candidates.empty()) {
    UnitValue value = HeldBy(candidates, floor, own_time, rules);
    const bool same = mine && mine->state == State::kHeld && mine->nonce == value.nonce;
    if (same && mine->deadline >= value.deadline && mine->floor >= told.floor) return std::nullopt;
    if (same) value.deadline = std::max(value.deadline, mine->deadline);
    return Write(name, own, value, forgotten_after(value.deadline));
  }
  if (mine && mine->Highest() >= told.floor && own.left >= told.left) return std::nullopt;
  if (mine && mine->state == State::kHeld) {  // came in quarantine: it stays, with the floor
    UnitValue value = *mine;
    value.floor = floor;
    return Write(name, own, value, told.left);
  }
  return Write(name, own, {.floor = floor}, told.left);
}

}  // namespace fencepost::locking
