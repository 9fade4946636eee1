// Why a lock node cannot be reached or logged in to: a code to decide by, and the detail to show.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace fencepost::locking {

enum class UnavailableReason : std::uint8_t {
  kNotYet,       // no attempt has failed so far
  kRefused,      // nothing listens there
  kTimeout,      // no connection, login or answer in time
  kNameTimeout,  // the DNS does not answer in time
  kNameUnknown,
  kTls,
  kLogin,    // name or password
  kNoRight,  // an ACL
  kLoading,
  kReplica,
  kOther  // the detail says more
};

struct NodeUnavailable {
  UnavailableReason code = UnavailableReason::kNotYet;
  std::string detail;  // one line, with what to do where that is known; never a password
  bool operator==(const NodeUnavailable&) const = default;
};

}  // namespace fencepost::locking
