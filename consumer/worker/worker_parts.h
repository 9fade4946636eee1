// The parts of a worker that its options choose, and the libraries that they use.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/runner.h"
#include "consumer/kafka/output/dead_letter_publisher.h"
#include "consumer/kafka/output/transactional_output.h"
#include "consumer/kafka/source/source.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/record_filter.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// `look_only`: OutputTerms::look_only, of one that has a ledger.
std::unique_ptr<Output> MakeOutput(const PipelineOptions& options, const std::string& worker,
                                   GroupMetadataOf group_metadata, bool look_only = false);

// What the pipeline's options say of how its source reads, and its ledger to ask. Both must outlive
// it.
SourceExtras SourceExtrasOf(const PipelineOptions& options, const std::string& worker);

// `when`; nullptr: the pipeline is about all records. Error: its jq program does not compile.
tl::expected<std::unique_ptr<RecordFilter>, Error> MakeRecordFilter(const FilterOptions& options);
// `value: {jq: …}` of a record of output.kafka; likewise.
tl::expected<std::unique_ptr<ValueProgram>, Error> MakeValueProgram(const std::string& program);
// Both, for an output.
JqMakers OutputJq();
// Whether the programs of `when` and of the output compile.
tl::expected<void, Error> CheckFilters(const PipelineOptions& options);

// What the ledger may forget, as far as the options tell; nullopt: nothing, ever.
std::optional<PruneScope> PruneScopeOf(const PipelineOptions& options);

// nullptr: there are none, or they go into the Kafka output's transactions.
std::unique_ptr<DeadLetterPublisher> MakeDeadLetterPublisher(const PipelineOptions& options,
                                                             ConsumerObserver* observer,
                                                             DeadLetterPublisher::Outcome outcome,
                                                             DeadLetterPublisher::State state);

// `concurrency`: calls at a time, at most (http; exec and jq have their own numbers below it).
// nullptr where there is no handler.
std::unique_ptr<HandlerRunner> MakeHandlerRunner(const HandlerOptions& options,
                                                 const std::string& pipeline, int concurrency,
                                                 ConsumerObserver* observer,
                                                 HandlerRunner::Answered answered);

// Whether its jq programs compile; `where` of the error is the key of the one that does not. Any
// thread.
tl::expected<void, Error> CheckPrograms(const HandlerOptions& options);
// What can be told of a handler without starting it: a jq program that does not compile, a url that
// is none, a command that is not there. One line. Any thread.
tl::expected<void, Error> CheckHandler(const HandlerOptions& options);

// As they are at run time: (name, version), e.g. ("librdkafka", "2.0.2"). For `version`, /status
// and reports of defects. Any thread.
std::vector<std::pair<std::string, std::string>> LibraryVersions();

}  // namespace fencepost::consumer
