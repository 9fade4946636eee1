// The parts of a worker that its options choose.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "consumer/kafka/output/dead_letter_publisher.h"
#include "consumer/kafka/output/transactional_output.h"
#include "consumer/kafka/source/source.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

std::unique_ptr<Output> MakeOutput(const PipelineOptions& options, const std::string& worker,
                                   GroupMetadataOf group_metadata);

// What the pipeline's options say of how its source reads, and its ledger to ask. Both must outlive
// it.
SourceExtras SourceExtrasOf(const PipelineOptions& options, const std::string& worker);

// What the ledger may forget, as far as the options tell; nullopt: nothing, ever.
std::optional<PruneScope> PruneScopeOf(const PipelineOptions& options);

// nullptr: there are none, or they go into the Kafka output's transactions.
std::unique_ptr<DeadLetterPublisher> MakeDeadLetterPublisher(const PipelineOptions& options,
                                                             ConsumerObserver* observer,
                                                             DeadLetterPublisher::Outcome outcome,
                                                             DeadLetterPublisher::State state);

}  // namespace fencepost::consumer
