// The Kafka output: records of a request and the offsets of its partitions in one transaction
// (KIP-98, KIP-447). An Output like the others: one thread, every call may block.
//
// What it keeps. A transaction holds a whole request or nothing. Offsets are sent on behalf of one
// assignment (WriteRequest::epoch): with the group metadata of that assignment, so that the broker
// refuses them once the group has moved on; then everything is kNotWritten. An unknown outcome of a
// commit is resolved by asking again. A record that the producer refuses for itself (too large, a
// selector that finds nothing) is kBadRecord, the rest of its request kNotWritten. A producer that
// was fenced by its successor (same transactional.id) is fatal.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "consumer/kafka/source.h"
#include "consumer/options.h"
#include "consumer/outputs/output.h"

namespace fencepost::consumer {

// The group metadata of this assignment, or nullptr when it is over (KafkaSource::MetadataOf).
using GroupMetadataOf = std::function<std::shared_ptr<const GroupMetadata>(AssignmentEpoch epoch)>;

// transactional.id is PIPELINE-WORKER: under a stable worker name a successor aborts its
// predecessor's open transaction at once.
std::unique_ptr<Output> MakeKafkaOutput(const KafkaOptions& kafka,
                                        const KafkaOutputOptions& options,
                                        std::string dead_letter_topic, std::string pipeline,
                                        std::string worker, GroupMetadataOf group_metadata);

}  // namespace fencepost::consumer
