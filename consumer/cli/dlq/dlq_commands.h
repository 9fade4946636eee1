// The commands that change something. Each prints what it does, or would do, and returns its exit
// code; one thread.
#pragma once

#include "consumer/cli/dlq/dlq_topic.h"

namespace fencepost::cli {

// Publishes letters to the topic that they came from.
int Replay(const consumer::PipelineOptions& options, LetterTopic& topic,
           const LetterRequest& request);
// Deletes letters that are of no use any more. Kafka deletes records only from the beginning of a
// partition, so what may be deleted ends before the first one that has to stay.
int Purge(const consumer::PipelineOptions& options, LetterTopic& topic,
          const LetterRequest& request);

}  // namespace fencepost::cli
