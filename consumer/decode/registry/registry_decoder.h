// The RecordDecoder of kafka.decode: takes the header of Confluent's wire format off keys and
// values, and decodes them by the schemas that the registry has.
#pragma once

#include <memory>

#include "consumer/decode/record_decoder.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// nullptr where nothing is to be decoded.
std::unique_ptr<RecordDecoder> MakeRecordDecoder(const DecodeOptions& options);
// Decodes one record, and waits for its schema; for commands that look at single records. Error:
// the registry did not give it within `limit`, one line.
tl::expected<void, std::string> DecodeNow(RecordDecoder& decoder, Record& record, Millis limit);

}  // namespace fencepost::consumer
