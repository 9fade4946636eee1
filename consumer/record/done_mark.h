// The checksum of a DONE mark: that of the content, with the Kafka cluster whose record was done in
// bits of the half that names the rule (content.h). Of a mark without a cluster, another program's,
// nothing is known. By chance two clusters have one tag once in 2^18, and two rules look alike once
// in 4,096. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "locking/base/types.h"

namespace fencepost::consumer {

using ClusterTag = std::uint64_t;  // in its place

ClusterTag TagOf(std::string_view cluster_id);
locking::ContentCrc MarkOf(locking::ContentCrc content, ClusterTag cluster);
bool IsOfAnotherCluster(locking::ContentCrc mark, ClusterTag cluster);
bool MarkIsOfOtherContent(locking::ContentCrc mark, locking::ContentCrc content);

}  // namespace fencepost::consumer
