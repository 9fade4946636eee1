#include "consumer/record/done_mark.h"

#include "consumer/json/json_digest.h"

namespace fencepost::consumer {
namespace {

// The lowest bit of the high half is 0 in a mark (and 1 in a rule), then comes the cluster, then
// what is left of the rule.
constexpr std::uint64_t kNoTag = 1ull << 32;
constexpr std::uint64_t kClusterBits = 0x3'ffffull << 33;
constexpr std::uint64_t kRuleBits = 0xfffull << 51;
constexpr std::uint64_t kContentBits = 0xffff'ffff;

bool HasTag(locking::ContentCrc mark) { return mark >> 32 != 0 && (mark & kNoTag) == 0; }

}  // namespace

ClusterTag TagOf(std::string_view cluster_id) {
  return DigestText(JsonKind::kBytes, cluster_id) & kClusterBits;
}

locking::ContentCrc MarkOf(locking::ContentCrc content, ClusterTag cluster) {
  return cluster | (content & (kRuleBits | kContentBits));
}

bool IsOfAnotherCluster(locking::ContentCrc mark, ClusterTag cluster) {
  return HasTag(mark) && (mark & kClusterBits) != cluster;
}

bool MarkIsOfOtherContent(locking::ContentCrc mark, locking::ContentCrc content) {
  if (!HasTag(mark)) return locking::IsOtherContent(mark, content);
  return locking::IsOtherContent(mark & ~kClusterBits, MarkOf(content, 0));
}

}  // namespace fencepost::consumer
