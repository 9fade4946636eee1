// Turns JSON into what a registered schema says: the other way round of consumer/decode, by the
// same mapping. Pure: a schema's text goes in once, then JSON, and nothing is read or asked. An
// encoder is used by one thread.
//
// Nothing is lost on the way, or the record is bad: a field that the schema does not have, digits
// that its type does not hold, a text that is no date. Source: the Avro specification (1.12), the
// proto3 JSON mapping.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/decode/decoder.h"

namespace fencepost::consumer {

// Why a JSON text does not fit the schema: predicates of one line ("does not fit …").
struct EncodeProblem {
  std::string detail;  // may hold parts of the record
  std::string shown;   // holds nothing of it
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends what stands behind the schema's id; after an error `payload` holds anything. `json` is
  // one JSON text.
  virtual tl::expected<void, EncodeProblem> Encode(std::string_view json, std::string& payload) = 0;
};

using MadeEncoder = tl::expected<std::unique_ptr<Encoder>, std::string>;

// Error: why the schema is none, one line.
MadeEncoder MakeAvroEncoder(const SchemaText& schema);
// `message`: its full name; empty: the first one of the schema.
MadeEncoder MakeProtobufEncoder(const SchemaText& schema, const std::string& message);
// Of JSON Schema the text as it is: nothing is checked against the schema.
MadeEncoder MakeEncoder(const SchemaText& schema, const std::string& message);

}  // namespace fencepost::consumer
