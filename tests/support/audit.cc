#include "tests/support/audit.h"

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fencepost::testing {
namespace {

std::string Name(const Record& record) {
  return fmt::format("o-{} of {}/{}", record.order, record.place.partition, record.place.offset);
}
std::string Name(const Effect& effect) {
  return fmt::format("{} with token {} by life {}", Name(effect.record), effect.token, effect.life);
}
std::string Name(const Call& call) {
  return fmt::format("{} ({}, token {}, life {}, {}, at {} us for {} us)", Name(call.record),
                     call.record_id, call.token, call.life, call.accepted ? "accepted" : "refused",
                     call.begin_ns / 1000, (call.end_ns - call.begin_ns) / 1000);
}

std::vector<Call> Sorted(std::vector<Call> calls) {
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& a, const Call& b) { return a.begin_ns < b.begin_ns; });
  return calls;
}

// Those of "{[0,5),[7,9)}".
std::vector<std::pair<std::int64_t, std::int64_t>> RangesIn(std::string text) {
  for (char& c : text) {
    if (c < '0' || c > '9') c = ' ';
  }
  std::istringstream numbers(text);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::int64_t from = 0, to = 0; numbers >> from >> to;) ranges.emplace_back(from, to);
  return ranges;
}

}  // namespace

// Counts, and keeps the first example; tells the audit at its end.
class Audit::Trouble {
 public:
  Trouble(Audit& audit, const char* what) : audit_(audit), what_(what) {}
  ~Trouble() {
    audit_.counts_[what_] += count_;
    if (count_ == 0) return;
    audit_.text_ += fmt::format("{}: {}, the first is {}\n", what_, count_, first_);
  }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;

  void Add(const std::string& example) {
    if (count_++ == 0) first_ = example;
  }

 private:
  Audit& audit_;
  const char* what_;
  int count_ = 0;
  std::string first_;
};

std::int64_t AmountOf(int order, int factor) { return std::int64_t{order} * 7 % 1000 * factor; }

Audit::Audit(const History& history) : history_(history) {
  for (const Sent& sent : history.sent) sent_[sent.record] = &sent;
  for (const Record& record : history.dead) dead_.insert(Subject(record));
}

// What may have one effect: the record, or its order.
Record Audit::Subject(const Record& record) const {
  return history_.by_position ? record : Record{record.order, {}};
}

std::string Audit::ChainOf(const Record& record) const {
  const auto sent = sent_.find(record);
  if (sent == sent_.end()) return "";
  return fmt::format("{} {} {}", sent->second->log, record.place.partition,
                     history_.order == "key" ? sent->second->key : "");
}

bool Audit::MayBeFoundAgain(const Place& place) const {
  const auto partition = static_cast<std::size_t>(place.partition);
  return partition < history_.moved_from.size() && place.offset >= history_.moved_from[partition];
}

Audit& Audit::Genuine(int factor) {
  Trouble wrong(*this, "effects of no record, or with a wrong amount");
  for (const Effect& effect : history_.effects) {
    const bool right =
        sent_.contains(effect.record) && effect.amount == AmountOf(effect.record.order, factor);
    if (!right) wrong.Add(fmt::format("{}, amount {}", Name(effect), effect.amount));
  }
  return *this;
}

Audit& Audit::NoneLost() {
  Trouble lost(*this, "lost");
  std::set<Record> seen = dead_;
  for (const Effect& effect : history_.effects) seen.insert(Subject(effect.record));
  for (const auto& [record, sent] : sent_) {
    if (history_.maybe_never.contains(record)) continue;
    if (seen.insert(Subject(record)).second) lost.Add(Name(record));
  }
  return *this;
}

Audit& Audit::Once() {
  NoneLost();
  Trouble doubled(*this, "doubled");
  std::map<Record, std::vector<std::string>> seen;
  for (const Effect& effect : history_.effects) {
    seen[Subject(effect.record)].push_back(Name(effect));
  }
  for (const auto& [subject, effects] : seen) {
    const std::size_t most = history_.maybe_twice.contains(subject) ? 2 : 1;
    if (effects.size() > most) doubled.Add(fmt::format("{}", fmt::join(effects, " and ")));
  }
  return *this;
}

Audit& Audit::RepeatedOnlyBy(const std::set<int>& lives) {
  std::map<Record, std::vector<std::string>> others;  // effects of lives that nothing happened to
  for (const Effect& effect : history_.effects) {
    if (lives.contains(effect.life)) continue;
    others[Subject(effect.record)].push_back(Name(effect));
  }
  Trouble repeated(*this, "repeated by workers that nothing happened to");
  for (const auto& [subject, effects] : others) {
    if (effects.size() > 1) repeated.Add(fmt::format("{}", fmt::join(effects, " and ")));
  }
  return *this;
}

Audit& Audit::InOrder() {
  Trouble out(*this, "out of order");
  if (history_.order == "none") return *this;
  std::set<Record> seen;
  std::map<std::string, Place> last;
  for (const Effect& effect : history_.effects) {
    if (!sent_.contains(effect.record) || !seen.insert(Subject(effect.record)).second) continue;
    Place& before = last.try_emplace(ChainOf(effect.record), effect.record.place).first->second;
    if (effect.record.place < before) {
      out.Add(fmt::format("{} after offset {}", Name(effect), before.offset));
    }
    before = effect.record.place;
  }
  return *this;
}

int Audit::Overtaken() const {
  std::map<int, std::int64_t> last;
  int overtaken = 0;
  for (const Effect& effect : history_.effects) {
    const Place& place = effect.record.place;
    std::int64_t& latest = last.try_emplace(place.partition, -1).first->second;
    if (place.offset < latest) ++overtaken;
    latest = std::max(latest, place.offset);
  }
  return overtaken;
}

Audit& Audit::DeadLetters() {
  Trouble both(*this, "effect and dead letter");
  Trouble unexpected(*this, "dead letters that no answer explains");
  int& moved = counts_["effect and dead letter where partitions moved"];
  for (const Effect& effect : history_.effects) {
    if (!history_.dead.contains(effect.record)) continue;
    if (MayBeFoundAgain(effect.record.place)) {
      ++moved;
    } else {
      both.Add(Name(effect));
    }
  }
  std::set<Record> unusable;
  for (const Call& call : history_.calls) {
    if (call.unusable) unusable.insert(Subject(call.record));
  }
  for (const Record& record : history_.dead) {
    if (!unusable.contains(Subject(record))) unexpected.Add(Name(record));
  }
  return *this;
}

// What a handler made may be written under a later lease.
Audit& Audit::EffectsHaveCalls() {
  std::map<Record, std::int64_t> first_call;  // the token of the first that was accepted
  std::map<std::pair<Record, std::int64_t>, bool> accepted;  // by token: any of its calls
  std::map<Record, std::string> calls;
  for (const Call& call : history_.calls) {
    const Record subject = Subject(call.record);
    if (call.accepted) first_call.try_emplace(subject, call.token);
    accepted[{subject, call.token}] |= call.accepted;
    calls[subject] += fmt::format(" life {} {} {}", call.life,
                                  call.accepted ? "accepted" : "refused", call.token);
  }
  Trouble wrong(*this, "effects that no call explains");
  for (const Effect& effect : history_.effects) {
    const Record subject = Subject(effect.record);
    const auto call = first_call.find(subject);
    if (call == first_call.end() || effect.token < call->second) {
      wrong.Add(Name(effect) + ": no call with it or before it;" + calls[subject]);
      continue;
    }
    const auto own = accepted.find({subject, effect.token});
    if (own != accepted.end() && !own->second) {
      wrong.Add(Name(effect) + ": its calls were refused;" + calls[subject]);
    }
  }
  return *this;
}

// Who was late is no trouble where it was refused.
Audit& Audit::TokensGoUp() {
  Trouble back(*this, "tokens that went back and were accepted");
  int& all = counts_["tokens back"];
  std::map<Record, std::int64_t> highest;
  for (const Call& call : history_.calls) {
    std::int64_t& top = highest[Subject(call.record)];
    if (call.token < top) {
      ++all;
      if (call.accepted) back.Add(fmt::format("{} after {}", Name(call), top));
    }
    if (call.accepted) top = std::max(top, call.token);
  }
  return *this;
}

Audit& Audit::CallsAreGenuine() {
  Trouble wrong(*this, "calls of no record, without its id, or without a token");
  for (const Call& call : history_.calls) {
    const Place& place = call.record.place;
    const bool named =
        history_.by_position
            ? call.record_id.ends_with(fmt::format("/{}/{}", place.partition, place.offset))
            : call.record_id == fmt::format("o-{}", call.record.order);
    if (!named || call.token <= 0 || !sent_.contains(call.record)) wrong.Add(Name(call));
  }
  return *this;
}

Audit& Audit::EachCalled() {
  std::set<Record> called;
  for (const Call& call : history_.calls) called.insert(Subject(call.record));
  Trouble missed(*this, "records that the handler was never called for");
  for (const auto& [record, sent] : sent_) {
    if (!called.contains(Subject(record))) missed.Add(Name(record));
  }
  return *this;
}

Audit& Audit::CallsExplained(const std::set<int>& lost, const std::set<int>& stale) {
  std::map<Record, Call> before;
  Trouble further(*this, "further calls without a reason");
  for (const Call& call : Sorted(history_.calls)) {
    const auto [at, first] = before.try_emplace(Subject(call.record), call);
    if (first) continue;
    const Call& last = at->second;
    const bool late =
        stale.contains(call.life) || (lost.contains(call.life) && call.token < last.token);
    if (last.accepted && !lost.contains(last.life) && !late) {
      further.Add(fmt::format("{} after {}", Name(call), Name(last)));
    }
    at->second = call;
  }
  return *this;
}

Audit& Audit::CallsApart(const std::set<int>& lost) {
  std::map<std::string, Call> before;  // the one that ends last
  Trouble beside(*this, "calls at the same time as another of their chain");
  for (const Call& call : Sorted(history_.calls)) {
    if (lost.contains(call.life)) continue;
    const auto [at, first] = before.try_emplace(ChainOf(call.record), call);
    if (first) continue;
    if (call.begin_ns < at->second.end_ns) {
      beside.Add(fmt::format("{} during {}", Name(call), Name(at->second)));
    }
    if (call.end_ns > at->second.end_ns) at->second = call;
  }
  return *this;
}

Audit& Audit::CommittedToTheEnd() {
  Trouble uncommitted(*this, "partitions that are not committed to their end");
  for (std::size_t i = 0; i < history_.ends.size(); ++i) {
    const std::int64_t at = i < history_.committed.size() ? history_.committed[i] : -1;
    if (at != history_.ends[i] && history_.ends[i] > 0) {
      uncommitted.Add(fmt::format("{} at {} of {}", i, at, history_.ends[i]));
    }
  }
  return *this;
}

Audit& Audit::Ledger() {
  Trouble wrong(*this, "partitions that the ledger has otherwise");
  for (std::size_t i = 0; i < history_.ends.size(); ++i) {
    const int partition = static_cast<int>(i);
    const std::int64_t end = history_.ends[i];
    const auto row = history_.ranges.find(partition);
    const std::string has = row == history_.ranges.end() ? "{}" : row->second;
    std::set<std::int64_t> holes;
    for (const Record& record : history_.dead) {
      if (record.place.partition == partition) holes.insert(record.place.offset);
    }
    const auto ranges = RangesIn(has);
    std::int64_t done = 0;
    bool right = ranges.size() <= 1 + holes.size();
    for (const auto& [from, to] : ranges) {
      while (done < from && holes.contains(done)) ++done;
      right = right && done == from && to > from;
      done = to;
    }
    while (done < end && holes.contains(done)) ++done;
    if (!right || done != end) {
      wrong.Add(fmt::format("{} with {} as done, not all before {}", partition, has, end));
    }
  }
  return *this;
}

}  // namespace fencepost::testing
