// A small world in which a node is replaced: a store of three nodes, of which the third is gone or
// has forgotten everything, clients that list another one in its place, and clients that do not.
// Each client is a shipped Store. Times are short: a lease lives for 6 s, a quarantine lasts 10.
//
// A history is the usual course of things with one or two disturbances, each of one message, and
// Search runs all of them: a delay-bounded search (Emmi, Qadeer, Rakamaric: Delay-Bounded
// Scheduling, POPL 2011).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fencepost::replacement_model {

enum class Disturbance : std::uint8_t {
  kLost,            // it never arrives; the connection breaks a second later
  kAnswerLost,      // it takes effect; the connection breaks a second later
  kAnswerSlow,      // its answer takes a second
  kLate,            // it takes effect 6 s later, when the connection is long broken
  kVeryLate,        // … 12 s later
  kClientRestarts,  // its client ends when it has sent it, and comes again without memory
  kCount
};

enum class Fate : std::uint8_t { kGone, kComesBack, kComesBackEmpty };

struct ListingClient {
  std::vector<int> nodes;
  std::chrono::milliseconds starts{0};
};

struct Scenario {
  std::string name;
  std::vector<ListingClient> clients;
  std::chrono::milliseconds away{1000};  // the third node, from then on
  std::chrono::milliseconds back{0};     // when it comes back, if it does
  Fate fate = Fate::kGone;
};
const std::vector<Scenario>& Scenarios();

struct Found {
  std::size_t histories = 0;
  std::size_t replaced = 0;  // of these: ended with a client that counts all three of its list
  std::optional<std::string> violation;
};

// All histories of one disturbance, and of two: of any messages, or of writes to sentinels only.
enum class Pairs : std::uint8_t { kOfWrites, kAll };
Found Search(const Scenario& scenario, Pairs pairs);

}  // namespace fencepost::replacement_model
