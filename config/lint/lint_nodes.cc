// The lock nodes: how many, each once, how they are reached.
#include <map>
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "locking/redis/address.h"

namespace fencepost::config {
namespace {

// Two spellings of one node are one node.
void LintOnce(const Values& values, Findings& findings) {
  std::map<std::string, const Text*> seen;  // by what is reached
  for (const Text& node : values.Texts("lock.redis.nodes")) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address) continue;
    const auto [first, is_new] = seen.emplace(locking::ReachedBy(*address), &node);
    if (is_new) continue;
    const Text& other = *first->second;
    findings.Error(node.at, "nodes",
                   "lock.redis.nodes: {} is given twice{}; each node is an independent primary",
                   node.shown, other.shown == node.shown ? "" : ", as " + other.shown);
  }
}

void LintTls(const Values& values, Findings& findings) {
  LintPair(values, "lock.redis.tls.certificate", "lock.redis.tls.key", findings);
  if (!values.Given("lock.redis.tls")) return;
  for (const Text& node : values.Texts("lock.redis.nodes")) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address || address->tls.value_or(true)) continue;
    findings.Warning(node.at, "tls",
                     "lock.redis.nodes: {} is reached without TLS, though there is lock.redis.tls; "
                     "rediss:// is with it",
                     node.shown);
  }
}

}  // namespace

void LintLockNodes(const Values& values, Findings& findings) {
  LintTls(values, findings);
  const std::size_t count = values.Texts("lock.redis.nodes").size();
  if (count == 0) return;
  LintOnce(values, findings);
  if (count % 2 == 1 && count <= locking::kMaxNodes) return;
  findings.Error(values.KeyPlace("lock.redis.nodes"), "nodes",
                 "lock.redis.nodes: {} nodes; a quorum needs 1, 3, 5 or 7", count);
}

void LintLockLogin(const Values& values, Findings& findings) {
  if (values.Wrong("lock.redis.password")) return;
  if (!values.String("lock.redis.password").empty()) return;
  bool needed = false;
  for (const Text& node : values.Texts("lock.redis.nodes")) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address || address->password) continue;
    needed = true;
    if (address->username.value_or("").empty()) continue;
    findings.Error(node.at, "login",
                   "lock.redis.nodes: {} has a user and no password: write it into the URL, or "
                   "give lock.redis.password",
                   node.shown);
  }
  if (!needed || !values.Given("lock.redis.username")) return;
  findings.Error(values.KeyPlace("lock.redis.username"), "missing",
                 "lock.redis.password is missing or empty: a username needs one");
}

}  // namespace fencepost::config
