#include <cstdio>

#include "locking/quorum_lock/quorum_lock.h"

using fencepost::locking::Millis;
using fencepost::locking::QuorumLock;

int ChargeOnce(const std::vector<std::string>& nodes, const std::string& invoice) {
  auto lock = QuorumLock::Connect({.redis = {.nodes = nodes}, .name_space = "billing"});
  if (!lock) return std::fprintf(stderr, "%s\n", lock.error().Line().c_str()), 2;
  if (auto ready = (*lock)->WaitReady(Millis(5000)); !ready) return 69;

  auto lease = (*lock)->Acquire(invoice, {.wait = Millis(5000)});
  if (!lease && lease.error().code == "done") return 0;  // somebody has charged it
  if (!lease) return std::fprintf(stderr, "%s\n", lease.error().Line().c_str()), 75;

  // Do the work here. Stop when lease->stop_token() stops, and write the token along: the place of
  // the effect refuses one below the highest it has seen.
  std::printf("charging %s, token %lu\n", invoice.c_str(), lease->token().value());
  if (!lease->valid()) return 76;
  return lease->Done(0, std::chrono::hours(24)) ? 0 : 1;  // or Release(), as the destructor does
}
