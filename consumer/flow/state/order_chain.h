// An order chain: the unfinished records of a partition, or of a key in it, that take effect one
// after the other; and the prefix rule (PROTOCOL.md, 15): leases are held only by records before
// which every record of the chain is leased, found DONE, or pinned (stage.h). Sans-IO; the
// engine thread's.
//
// Invariants: the records are in the order of delivery; out_of_prefix counts those that were in the
// leased prefix and are not any more (InFlight::out_of_prefix).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "consumer/flow/state/in_flight.h"

namespace fencepost::consumer {

struct OrderChain {
  std::uint64_t id = 0;           // WriteItem::chain
  std::string name;               // order: key: among the flow's chains
  InFlight* tail = nullptr;       // null: it is empty
  std::size_t out_of_prefix = 0;  // those behind such a record may be pinned, and still in it

  void Join(InFlight& record);
  // The record behind it, if there is one.
  InFlight* Leave(InFlight& record);
};

// Out of the leased prefix of its chain, or in it again. Nothing where it has no chain.
inline void MarkOutOfPrefix(InFlight& record, bool out);
// The nearest record before it in its chain that is not in the leased prefix; null: there is none,
// and a lease of this one counts.
inline const InFlight* NotLeasedBefore(const InFlight& record);

// Everything before it in its chain is handled: it may be handled and written.
inline bool BeforeIsHandled(const InFlight& record) {
  return record.chain_before == nullptr || Handled(*record.chain_before);
}

inline void OrderChain::Join(InFlight& record) {
  record.chain = this;
  record.chain_before = tail;
  if (tail != nullptr) tail->chain_after = &record;
  tail = &record;
}

inline InFlight* OrderChain::Leave(InFlight& record) {
  MarkOutOfPrefix(record, false);
  InFlight* const after = std::exchange(record.chain_after, nullptr);
  InFlight* const before = std::exchange(record.chain_before, nullptr);
  if (before != nullptr) before->chain_after = after;
  (after != nullptr ? after->chain_before : tail) = before;
  record.chain = nullptr;
  return after;
}

inline void MarkOutOfPrefix(InFlight& record, bool out) {
  if (record.chain == nullptr || record.out_of_prefix == out) return;
  record.out_of_prefix = out;
  out ? ++record.chain->out_of_prefix : --record.chain->out_of_prefix;
}

// Usually the one just before it decides. Where a record has lost its lease, those behind it that
// are pinned stay in the prefix.
inline const InFlight* NotLeasedBefore(const InFlight& record) {
  const InFlight* at = record.chain_before;
  const bool pinned_may_hide_it = at != nullptr && record.chain->out_of_prefix != 0;
  while (pinned_may_hide_it && at != nullptr && Pinned(at->stage())) at = at->chain_before;
  return at == nullptr || InLeasedPrefix(at->stage()) ? nullptr : at;
}

}  // namespace fencepost::consumer
