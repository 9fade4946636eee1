#include "locking/redis/session/node_error.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::locking {
std::string ShownOfNode(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string shown(text.substr(0, kMost));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown.append(text.size() > kMost ? " [cut]" : "");
}

namespace {

struct Known {
  std::string_view text;
  bool at_start;
  NodeErrorKind kind;
  CommandError reason;
  std::string_view hint;
  UnavailableReason away = UnavailableReason::kOther;
};

constexpr auto kOther = NodeErrorKind::kOther;
constexpr std::string_view kCheckLogin =
    "check lock.redis.username and lock.redis.password, or the node's URL";
constexpr std::string_view kGrant = "+";  // HintOfGrant says what
constexpr std::string_view kCluster =
    "the node is part of a Redis Cluster (cluster_enabled:1); list independent primaries in "
    "lock.redis.nodes";
constexpr std::string_view kUsePrimary =
    "the node is a replica: its name is looked up again, until it is a primary; list independent "
    "primaries in lock.redis.nodes";

// Redis words the same error differently depending on where it occurs (in a script, at AUTH, …).
constexpr Known kKnown[] = {
    {"NOSENTINEL", true, NodeErrorKind::kNoSentinel, CommandError::kOther, ""},
    {"NOSCRIPT", true, NodeErrorKind::kNoScript, CommandError::kNoscript, ""},
    {"WRONGPASS", true, kOther, CommandError::kAuth, kCheckLogin, UnavailableReason::kLogin},
    {"NOAUTH", true, kOther, CommandError::kAuth, kCheckLogin, UnavailableReason::kLogin},
    {"ERR AUTH ", true, kOther, CommandError::kAuth,
     "the node has no password: remove lock.redis.password, or set a password at the node",
     UnavailableReason::kLogin},
    {"NOPERM", true, kOther, CommandError::kAuth, kGrant, UnavailableReason::kNoRight},
    {"The user executing the script can't", false, kOther, CommandError::kAuth, kGrant,
     UnavailableReason::kNoRight},
    {"ACL failure in script", false, kOther, CommandError::kAuth, kGrant,
     UnavailableReason::kNoRight},
    {"No permissions to access", false, kOther, CommandError::kAuth, kGrant,
     UnavailableReason::kNoRight},
    {"OOM", true, kOther, CommandError::kOom,
     "raise the node's maxmemory, or lower lock.remember_done"},
    {"ERR unknown command", true, kOther, CommandError::kOther,
     "use Redis 7.0 or later, without renamed commands, without a proxy in front of it, and no "
     "Sentinel"},
    {"MOVED ", true, kOther, CommandError::kOther, kCluster},
    {"ASK ", true, kOther, CommandError::kOther, kCluster},
    {"CROSSSLOT", true, kOther, CommandError::kOther, kCluster},
    {"CLUSTERDOWN", true, kOther, CommandError::kOther, kCluster},
    {"READONLY", true, NodeErrorKind::kNotPrimary, CommandError::kReadonly, kUsePrimary,
     UnavailableReason::kReplica},
    {"MASTERDOWN", true, NodeErrorKind::kNotPrimary, CommandError::kOther, kUsePrimary,
     UnavailableReason::kReplica},
    {"LOADING", true, NodeErrorKind::kNotPrimary, CommandError::kOther,
     "the node loads its data; it is retried", UnavailableReason::kLoading},
    {"MISCONF", true, kOther, CommandError::kOther, "the node cannot save to disk; see its log"},
};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The command in "… no permissions to run the 'script|load' command"; empty when none is named.
std::string_view DeniedCommand(std::string_view text) {
  constexpr std::string_view kBefore = "to run the '";
  const std::size_t before = text.find(kBefore);
  if (before == std::string_view::npos) return {};
  const std::string_view rest = text.substr(before + kBefore.size());
  return rest.substr(0, rest.find('\''));
}

// What the node's user lacks.
std::string HintOfGrant(std::string_view text) {
  const std::string_view command = DeniedCommand(text);
  std::string lacks = "what is listed there";
  if (!command.empty()) {
    lacks = "+" + ShownOfNode(command);
  } else if (Has(text, "channel")) {
    lacks = "&fencepost:*";
  } else if (Has(text, "key")) {
    lacks = "~fencepost:*";
  } else if (Has(text, "run this command")) {  // Redis 7.0 does not say which, inside a script
    lacks = "the commands of the scripts, +get +set +pttl +time";
  }
  return fmt::format(
      "the node's ACL user lacks a right: grant it {} (locking/README.md, Access "
      "control)",
      lacks);
}

}  // namespace

NodeError ReadNodeError(std::string_view whole) {
  const std::string_view text = whole.substr(0, whole.find(", with args beginning with"));
  for (const Known& known : kKnown) {
    if (!(known.at_start ? text.starts_with(known.text) : Has(text, known.text))) continue;
    const bool grant = known.hint == kGrant;
    return {known.kind, known.reason, grant ? HintOfGrant(text) : std::string(known.hint),
            ShownOfNode(text), known.away};
  }
  return {.text = ShownOfNode(text)};
}

}  // namespace fencepost::locking
