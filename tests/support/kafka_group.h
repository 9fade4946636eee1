// A consumer group, as its coordinator sees it.
#pragma once

#include <string>
#include <vector>

namespace fencepost::testing {

struct GroupView {
  std::string state;  // as Kafka calls it: Stable, PreparingRebalance, …
  std::vector<std::string> members;
  std::string assignments;  // of all members one after the other, as their protocol writes them
};

// Broker: HOST:PORT. Nothing of it while its coordinator is not known yet. Throws
// std::runtime_error.
GroupView LookAtGroup(const std::string& broker, const std::string& group);

// Takes all members out of the group, as their session's end would, and tells them nothing: each
// finds out at its next heartbeat or commit. Broker: HOST:PORT, where the coordinator is. Returns
// how many there were; throws std::runtime_error.
int RemoveMembers(const std::string& broker, const std::string& group);

// Deletes a group that has no members, its offsets with it; throws std::runtime_error.
void DeleteGroup(const std::string& broker, const std::string& group);

}  // namespace fencepost::testing
