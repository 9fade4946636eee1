#include "tests/fault/matrix/audit.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fencepost::matrix {
namespace {

// Counts, and keeps the first example.
class Trouble {
 public:
  explicit Trouble(const char* what) : what_(what) {}
  void Add(const std::string& example) {
    if (count_++ == 0) first_ = example;
  }
  // The number, its line added to the text.
  int Tell(std::string& text) const {
    if (count_ > 0) text += fmt::format("{}: {}, the first is {}\n", what_, count_, first_);
    return count_;
  }

 private:
  const char* what_;
  int count_ = 0;
  std::string first_;
};

std::string Name(int order) { return fmt::format("o-{}", order); }
std::string Name(const Effect& effect) {
  return fmt::format("o-{} of {}/{} with token {}", effect.order, effect.place.partition,
                     effect.place.offset, effect.token);
}

std::string EffectsOf(const History& history, int order) {
  std::vector<std::string> all;
  for (const Effect& effect : history.effects) {
    if (effect.order == order) all.push_back(Name(effect));
  }
  return fmt::format("{}", fmt::join(all, " and "));
}

bool MayBeFoundAgain(const History& history, const Place& place) {
  const auto partition = static_cast<std::size_t>(place.partition);
  return partition < history.moved_from.size() && place.offset >= history.moved_from[partition];
}

void JudgeNumbers(const History& history, Verdict& verdict) {
  Trouble lost("lost");
  Trouble doubled("doubled");
  Trouble both("effect and dead letter");
  Trouble dead("dead letters that no answer explains");
  std::vector<int> counts(static_cast<std::size_t>(history.orders));
  for (const Effect& effect : history.effects) {
    if (effect.order >= 0 && effect.order < history.orders) {
      ++counts[static_cast<std::size_t>(effect.order)];
    }
  }
  std::set<int> dead_orders;
  for (const auto& [place, order] : history.dead) dead_orders.insert(order);
  for (const Effect& effect : history.effects) {
    if (!history.dead.contains(effect.place)) continue;
    if (MayBeFoundAgain(history, effect.place)) {
      ++verdict.moved;
    } else {
      both.Add(Name(effect));
    }
  }
  for (int order = 0; order < history.orders; ++order) {
    const int count = counts[static_cast<std::size_t>(order)];
    if (count == 0 && !dead_orders.contains(order)) lost.Add(Name(order));
    if (count > 1) doubled.Add(EffectsOf(history, order));
  }
  std::set<int> unusable;
  for (const Call& call : history.calls) {
    if (call.unusable) unusable.insert(call.order);
  }
  for (const auto& [place, order] : history.dead) {
    if (!unusable.contains(order)) dead.Add(Name(order));
  }
  verdict.lost = lost.Tell(verdict.text);
  verdict.doubled = doubled.Tell(verdict.text);
  verdict.both = both.Tell(verdict.text);
  verdict.unexpected_dead = dead.Tell(verdict.text);
}

std::string CallsOf(const History& history, const Effect& effect) {
  std::string text;
  for (const Call& call : history.calls) {
    if (call.order != effect.order) continue;
    text += fmt::format(" life {} {} {}", call.life, call.accepted ? "accepted" : "refused",
                        call.token);
  }
  return text;
}

void JudgeEffects(const History& history, Verdict& verdict) {
  Trouble order("out of order");
  Trouble wrong("effects that are wrong");
  std::map<Place, const Sent*> records;
  for (const Sent& sent : history.sent) records[sent.place] = &sent;
  std::map<int, std::int64_t> first_call;  // by order: the token of the first that was accepted
  std::map<std::pair<int, std::int64_t>, bool> accepted;  // by order and token: any of its calls
  for (const Call& call : history.calls) {
    if (call.accepted) first_call.try_emplace(call.order, call.token);
    bool& any = accepted[{call.order, call.token}];
    any = any || call.accepted;
  }
  std::map<std::pair<int, std::string>, Place> last;
  for (const Effect& effect : history.effects) {
    const auto record = records.find(effect.place);
    if (record == records.end() || record->second->order != effect.order ||
        effect.amount != AmountOf(effect.order)) {
      wrong.Add(fmt::format("{}, amount {}: no such record", Name(effect), effect.amount));
      continue;
    }
    // What a handler made may be written under a later lease.
    const auto call = first_call.find(effect.order);
    if (call == first_call.end() || effect.token < call->second) {
      wrong.Add(Name(effect) + ": no call with it or before it;" + CallsOf(history, effect));
    }
    const auto own = accepted.find({effect.order, effect.token});
    if (own != accepted.end() && !own->second) {
      wrong.Add(Name(effect) + ": its calls were refused;" + CallsOf(history, effect));
    }
    const auto [at, first] =
        last.try_emplace({effect.place.partition, record->second->key}, effect.place);
    if (first) continue;
    if (effect.place < at->second) {
      order.Add(fmt::format("{} after offset {}", Name(effect), at->second.offset));
    }
    at->second = effect.place;
  }
  verdict.out_of_order = order.Tell(verdict.text);
  verdict.wrong = wrong.Tell(verdict.text);
}

void JudgeTokens(const History& history, Verdict& verdict) {
  Trouble back("tokens that went back and were accepted");
  std::map<int, std::int64_t> highest;
  for (const Call& call : history.calls) {
    std::int64_t& top = highest[call.order];
    if (call.token < top) {
      ++verdict.token_back;
      if (call.accepted) {
        back.Add(fmt::format("{}: {} after {}", Name(call.order), call.token, top));
      }
    }
    if (call.accepted) top = std::max(top, call.token);
  }
  (void)back.Tell(verdict.text);
}

}  // namespace

std::int64_t AmountOf(int order) { return std::int64_t{order} * 7 % 1000 * 2; }

Verdict Judge(const History& history) {
  Verdict verdict;
  JudgeNumbers(history, verdict);
  JudgeEffects(history, verdict);
  JudgeTokens(history, verdict);
  Trouble uncommitted("partitions that are not committed to their end");
  for (std::size_t i = 0; i < history.ends.size(); ++i) {
    const std::int64_t at = i < history.committed.size() ? history.committed[i] : -1;
    if (at != history.ends[i] && history.ends[i] > 0) {
      uncommitted.Add(fmt::format("{} at {} of {}", i, at, history.ends[i]));
    }
  }
  verdict.uncommitted = uncommitted.Tell(verdict.text);
  return verdict;
}

}  // namespace fencepost::matrix
