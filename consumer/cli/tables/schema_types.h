// Types of columns by the schemas of a pipeline's topics.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/decode/avro_schema.h"
#include "consumer/outputs/tables/wanted_tables.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// What kafka.decode makes of the part of an Avro value that a JSON pointer leads to; nullopt: the
// schema has no such part, or it may be of several kinds. Pure.
std::optional<consumer::ValueKind> KindInSchema(const consumer::avro::Schema& schema,
                                                std::string_view pointer);

// Asks the registry of kafka.decode for the newest schema of the values of each topic (the subject
// TOPIC-value), and tells the tables what Avro says of their columns; where two topics differ,
// nothing. Blocks as RegistryClient does. The topics whose schema was taken. Error: no answer.
tl::expected<std::vector<std::string>, Error> TakeSchemaTypes(
    const consumer::PipelineOptions& options, const std::vector<std::string>& topics,
    std::vector<consumer::WantedTable>& tables);

}  // namespace fencepost::cli
