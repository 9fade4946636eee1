#include "locking/redis/node_error.h"

namespace fencepost::locking {
namespace {

struct Known {
  std::string_view text;
  bool at_start;
  NodeError error;
};

constexpr std::string_view kCheckLogin = "check lock.redis.username and lock.redis.password";
constexpr std::string_view kGrant =
    "give the ACL user ~fencepost:* and the commands of OPERATIONS.md (ACL)";
constexpr std::string_view kUsePrimary =
    "the node is a replica; list independent primaries in lock.redis.nodes";

// Redis words the same trouble differently by where it notices it (inside a script, at AUTH, …).
constexpr Known kKnown[] = {
    {"NOSENTINEL", true, {NodeErrorKind::kNoSentinel, CommandError::kOther, ""}},
    {"NOSCRIPT", true, {NodeErrorKind::kNoScript, CommandError::kNoscript, ""}},
    {"WRONGPASS", true, {NodeErrorKind::kOther, CommandError::kAuth, kCheckLogin}},
    {"NOAUTH", true, {NodeErrorKind::kOther, CommandError::kAuth, kCheckLogin}},
    {"ERR AUTH ",
     true,
     {NodeErrorKind::kOther, CommandError::kAuth,
      "the node has no password: take lock.redis.password away, or set one there"}},
    {"NOPERM", true, {NodeErrorKind::kOther, CommandError::kAuth, kGrant}},
    {"can't run this command", false, {NodeErrorKind::kOther, CommandError::kAuth, kGrant}},
    {"No permissions to access", false, {NodeErrorKind::kOther, CommandError::kAuth, kGrant}},
    {"OOM",
     true,
     {NodeErrorKind::kOther, CommandError::kOom,
      "raise the node's maxmemory, or lower lock.remember_done"}},
    {"READONLY", true, {NodeErrorKind::kReplica, CommandError::kReadonly, kUsePrimary}},
    {"MASTERDOWN", true, {NodeErrorKind::kReplica, CommandError::kOther, kUsePrimary}},
    {"LOADING",
     true,
     {NodeErrorKind::kOther, CommandError::kOther, "the node loads its data; it is tried again"}},
    {"MISCONF",
     true,
     {NodeErrorKind::kOther, CommandError::kOther, "the node cannot save to disk; see its log"}},
};

}  // namespace

NodeError ReadNodeError(std::string_view text) {
  for (const Known& known : kKnown) {
    const bool found = known.at_start ? text.starts_with(known.text)
                                      : text.find(known.text) != std::string_view::npos;
    if (found) return known.error;
  }
  return {};
}

}  // namespace fencepost::locking
