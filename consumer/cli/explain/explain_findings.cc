#include "consumer/cli/explain/explain_findings.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "consumer/cli/shared/moments.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

const StoredLetter* NewestLetter(const Facts& facts) {
  const auto* letters = Known(facts.letters);
  if (letters == nullptr) return nullptr;
  const auto found = std::find_if(letters->rbegin(), letters->rend(), [&](const auto& letter) {
    return !facts.position || letter.origin == *facts.position;
  });
  return found == letters->rend() ? nullptr : &*found;
}

}  // namespace

Findings::Findings(const Facts& given)
    : facts(given),
      options(facts.options),
      finality(FinalityOf(options.output)),
      row(Found(facts.row)),
      letter(NewestLetter(facts)),
      group_known(facts.position && Known(facts.committed) != nullptr),
      committed(facts.position ? Found(facts.committed) : nullptr),
      past(committed != nullptr && facts.position->offset < *committed) {
  std::map<locking::Token, int> holders;
  for (const NodeFacts& node : facts.nodes) {
    if (node.state == NodeState::kUnreachable) continue;
    ++reached;
    done += node.state == NodeState::kDone && finality != consumer::Finality::kLedger ? 1 : 0;
    if (node.state != NodeState::kHeld) continue;
    if (node.rest > Millis(0)) {
      held = std::max(held, ++holders[node.token]);
    } else {
      ++expired;
    }
  }
}

std::string Findings::Nodes(int count) const {
  return fmt::format("{} of {} lock nodes", count, facts.nodes.size());
}

std::string Findings::Drawn(NodeState state) const {
  locking::Token newest;
  for (const NodeFacts& node : facts.nodes) {
    if (node.state == state) newest = std::max(newest, node.token);
  }
  return MomentText(newest.wall());
}

std::string Findings::LongestRest(NodeState state) const {
  Millis rest{0};
  for (const NodeFacts& node : facts.nodes) {
    if (node.state == state) rest = std::max(rest, node.rest);
  }
  return SpanText(rest);
}

}  // namespace fencepost::cli
