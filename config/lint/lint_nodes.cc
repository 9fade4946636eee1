// The lock nodes and their groups: how many, each once, how they are reached.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/lint/lint_parts.h"
#include "config/read/defaults.h"
#include "locking/core/group_place.h"
#include "locking/redis/address.h"

namespace fencepost::config {
namespace {

constexpr std::string_view kGroups = "lock.redis.groups";

struct Group {
  Place at;  // of its first node
  int nodes = 0;
};

std::vector<Group> GroupsOf(const Values& values) {
  std::vector<Group> groups;
  int list = -1;
  for (const Text& node : LockNodes(values)) {
    if (node.list != list) groups.push_back({node.at});
    list = node.list;
    ++groups.back().nodes;
  }
  return groups;
}

// Two spellings of one node are one node, in one group or in two.
void LintOnce(const Values& values, Findings& findings) {
  std::map<std::string, const Text*> seen;  // by what is reached
  for (const Text& node : LockNodes(values)) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address) continue;
    const auto [first, is_new] = seen.emplace(locking::ReachedBy(*address), &node);
    if (is_new) continue;
    const Text& other = *first->second;
    findings.Error(
        node.at, "nodes",
        fmt::format("{}: {} is given twice{}{}; each node is an independent primary",
                    LockNodesPath(values), node.shown,
                    other.shown == node.shown ? "" : ", as " + other.shown,
                    other.list == node.list ? "" : fmt::format(", in group {} too", other.list)));
  }
}

void LintGroups(const Values& values, const std::vector<Group>& groups, Findings& findings) {
  const Place at = values.KeyPlace(kGroups);
  if (groups.size() > locking::kMaxGroups) {
    findings.Error(at, "groups",
                   fmt::format("{}: {} groups; there are at most {}", kGroups, groups.size(),
                               locking::kMaxGroups));
  }
  const std::size_t nodes = LockNodes(values).size();
  if (nodes > locking::kMaxNodesInAll) {
    findings.Error(at, "groups",
                   fmt::format("{}: {} nodes in all; there are at most {}", kGroups, nodes,
                               locking::kMaxNodesInAll));
  }
  std::set<int> sizes;
  for (const Group& group : groups) sizes.insert(group.nodes);
  if (sizes.size() < 2) return;
  findings.Warning(at, "groups",
                   fmt::format("{}: groups of {} nodes: each has as many names, whatever its size, "
                               "and the smaller ones stand fewer failures",
                               kGroups, fmt::join(sizes, " and ")));
}

void LintTls(const Values& values, Findings& findings) {
  LintPair(values, "lock.redis.tls.certificate", "lock.redis.tls.key", findings);
  if (!values.Given("lock.redis.tls")) return;
  for (const Text& node : LockNodes(values)) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address || address->tls.value_or(true)) continue;
    findings.Warning(node.at, "tls",
                     fmt::format("{}: {} is reached without TLS, though there is lock.redis.tls; "
                                 "rediss:// is with it",
                                 LockNodesPath(values), node.shown));
  }
}

}  // namespace

void LintLockNodes(const Values& values, Findings& findings) {
  LintTls(values, findings);
  const bool both = values.Given("lock.redis.nodes") && values.Given(kGroups);
  if (both) {
    findings.Error(values.KeyPlace("lock.redis.nodes"), "groups",
                   "lock.redis.nodes: lock.redis.groups is there too; give one of them: nodes are "
                   "one group");
  } else if (values.Given("lock.redis") && !values.Given(LockNodesPath(values))) {
    findings.Error(values.KeyPlace("lock.redis"), "missing", "lock.redis.nodes is missing");
  }
  const std::vector<Group> groups = GroupsOf(values);
  if (both || groups.empty()) return;
  LintOnce(values, findings);
  const bool several = values.Given(kGroups);
  if (several) LintGroups(values, groups, findings);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const int count = groups[i].nodes;
    if (count % 2 == 1 && count <= locking::kMaxNodes) continue;
    findings.Error(several ? groups[i].at : values.KeyPlace("lock.redis.nodes"), "nodes",
                   fmt::format("{}: {} nodes{}; a quorum needs 1, 3, 5 or 7", LockNodesPath(values),
                               count, several ? fmt::format(" in group {}", i + 1) : ""));
  }
}

void LintLockLogin(const Values& values, Findings& findings) {
  if (values.Wrong("lock.redis.password")) return;
  if (!values.String("lock.redis.password").empty()) return;
  bool needed = false;
  for (const Text& node : LockNodes(values)) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address || address->password) continue;
    needed = true;
    if (address->username.value_or("").empty()) continue;
    findings.Error(node.at, "login",
                   fmt::format("{}: {} has a user and no password: write it into the URL, or give "
                               "lock.redis.password",
                               LockNodesPath(values), node.shown));
  }
  if (!needed || !values.Given("lock.redis.username")) return;
  findings.Error(values.KeyPlace("lock.redis.username"), "missing",
                 "lock.redis.password is missing or empty: a username needs one");
}

}  // namespace fencepost::config
