// The encoders of output.kafka.encode: keys and values in the wire format of a schema registry, by
// the schemas of their subjects. Calls may block; one thread, but for Cancel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/decode/registry/registry_client.h"
#include "consumer/encode/encoder.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// Error of Prepare: the registry answers, and the subject has no such version or schema.
inline constexpr std::string_view kSchemaMissing = "schema_missing";

class RecordEncoder {
 public:
  explicit RecordEncoder(EncodeOptions options);

  // Asks the registry for what is not known yet; once all is known it asks nothing more. An error
  // is of the registry, or of what stands in it: it is worth asking again.
  tl::expected<void, Error> Prepare();
  void Cancel() { registry_.Cancel(); }  // any thread: Prepare ends soon

  [[nodiscard]] bool HasKey() const { return key_.has_value(); }
  [[nodiscard]] bool HasValue() const { return value_.has_value(); }
  // After Prepare went well. `out` becomes the header and the payload.
  tl::expected<void, EncodeProblem> Key(std::string_view json, std::string& out) {
    return Encode(*key_, json, out);
  }
  tl::expected<void, EncodeProblem> Value(std::string_view json, std::string& out) {
    return Encode(*value_, json, out);
  }

 private:
  struct Part {
    EncodePart options;
    std::string name;                  // "key", "value"
    std::unique_ptr<Encoder> encoder;  // nullptr: not known yet
    std::string header;
  };
  tl::expected<void, Error> Prepare(Part& part);
  tl::expected<RegisteredSchema, RegistryFailure> Find(const EncodePart& part);
  static tl::expected<void, EncodeProblem> Encode(Part& part, std::string_view json,
                                                  std::string& out);

  RegistryClient registry_;
  std::optional<Part> key_, value_;
};

}  // namespace fencepost::consumer
