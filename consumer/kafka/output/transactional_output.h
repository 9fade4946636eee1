// The Kafka output: records of a request and the offsets of its partitions in one transaction
// (KIP-98, KIP-447). An Output like the others: one thread, every call may block.
//
// What it keeps. A transaction holds a whole request or nothing. Offsets are sent on behalf of one
// assignment (WriteRequest::epoch): with the group metadata of that assignment, so that the broker
// refuses them once the group has moved on; then everything is kNotWritten. A record that is
// refused for itself (too large, a selector that finds nothing, a value that does not fit its
// schema) is kBadRecord, and so are all
// others of the request that are; the rest is kNotWritten. A request without items moves offsets
// only; where its assignment is over it answers like one that was written (with no outcomes):
// nothing is left to do.
//
// Errors, all of them after a wait unless they say otherwise: nothing was written, because of the
// brokers (away, no such topic, not authorised, the transaction failed), or the outcome of a commit
// is unknown: the next Write, which must be of the same request, goes on asking for it. A producer
// that librdkafka gives up (its transaction outlived transaction_timeout, the brokers forgot it) is
// replaced by a new one, and what became of its commit is read from the group's offsets. Fatal: it
// was fenced by its successor (same transactional.id); every later call says the same.
//
// A batch of records that the broker refuses does not say which record is to blame: the request
// goes once more (retry_at_once), each record a batch of its own.
//
// On another cluster than the group's (output.kafka.brokers) requests have no offsets: those are
// committed to the group after the answer, in the order of each partition, so nothing is lost. A
// worker that ends in between, or a commit whose outcome is not known, writes records twice.
//
// After Interrupt every call ends within about 200 ms (sending offsets: 5 s), and fails where it
// would have to wait. It is for the end of the worker. An open transaction is aborted when the
// output is destroyed, where that takes no longer than half a second.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/record_filter.h"

namespace fencepost::consumer {

struct GroupMetadata;  // consumer/kafka/client/rdkafka_holders.h

// The group metadata of this assignment, or nullptr when it is over (KafkaSource::MetadataOf).
using GroupMetadataOf = std::function<std::shared_ptr<const GroupMetadata>(AssignmentEpoch epoch)>;

// `source`: the cluster that is read, where it must be another one: a topic has the name of one
// that is read. transactional.id is PIPELINE.WORKER (no pipeline name holds a dot): under a stable
// worker name a successor aborts its predecessor's open transaction at once.
std::unique_ptr<Output> MakeKafkaOutput(const KafkaOptions& kafka,
                                        const KafkaOutputOptions& options,
                                        std::string dead_letter_topic, std::string pipeline,
                                        std::string worker, GroupMetadataOf group_metadata,
                                        const JqMakers& jq = {},
                                        std::optional<KafkaOptions> source = {});

}  // namespace fencepost::consumer
