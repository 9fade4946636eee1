// A consumer group, as its coordinator sees it.
#pragma once

#include <string>

namespace fencepost::testing {

// Takes all members out of the group, as their session's end would, and tells them nothing: each
// finds out at its next heartbeat or commit. Broker: HOST:PORT, where the coordinator is. Returns
// how many there were; throws std::runtime_error.
int RemoveMembers(const std::string& broker, const std::string& group);

}  // namespace fencepost::testing
