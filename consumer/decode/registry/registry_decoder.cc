#include "consumer/decode/registry/registry_decoder.h"

#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "consumer/decode/registry/schema_cache.h"
#include "consumer/decode/wire_format.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kTurn = std::size_t{16} << 20;  // decoded in one go, about

// What a decoded record points at.
struct Decoded {
  std::shared_ptr<const void> encoded;  // the bytes as Kafka has them, and the headers
  std::string key, value;
};

class RegistryDecoder : public RecordDecoder {
 public:
  explicit RegistryDecoder(const DecodeOptions& options) : options_(options) {
    if (!options.registry.url.empty()) schemas_.emplace(options.registry);
  }

  std::size_t Decode(std::span<Record> records) override {
    std::size_t done = 0;
    for (std::size_t made = 0; done < records.size() && made < kTurn; ++done) {
      if (!DecodeOne(records[done])) {
        for (const Record& record : records.subspan(done)) AskFor(record);
        break;
      }
      made += records[done].Bytes();
    }
    return done;
  }

  [[nodiscard]] std::string Trouble() const override { return schemas_ ? schemas_->Trouble() : ""; }

 private:
  // All that wait are asked for together.
  void AskFor(const Record& record) {
    const auto ask = [this](RecordFormat format, std::optional<std::string_view> part) {
      if (!part || format == RecordFormat::kJsonSchema || !DecodeOptions::IsWireFormat(format))
        return;
      if (const auto message = ParseWireFormat(*part)) schemas_->Find(message->schema_id);
    };
    ask(options_.key, record.key);
    ask(options_.value, record.value);
  }

  // False: a schema is not known yet. The record is as it was.
  bool DecodeOne(Record& record) {
    auto to = std::make_shared<Decoded>();
    const Encoded encoded{.key = record.key, .value = record.value};
    std::optional<std::string_view> key = record.key;
    std::optional<std::string_view> value = record.value;
    if (!Part("key", options_.key, key, to->key, record.problem)) return false;
    if (!Part("value", options_.value, value, to->value, record.problem)) return false;
    if (!record.problem.empty()) to->key = to->value = std::string();  // what was begun
    to->encoded = std::move(record.owner);
    record.owner = std::move(to);
    if (record.problem.empty()) {
      record.key = key;
      record.value = value;
    }
    record.encoded = std::make_shared<const Encoded>(encoded);
    return true;
  }

  // `part` becomes what it is decoded to, in `to`. A tombstone stays one.
  bool Part(std::string_view name, RecordFormat format, std::optional<std::string_view>& part,
            std::string& to, std::string& problem) {
    if (!part || !problem.empty() || !DecodeOptions::IsWireFormat(format)) return true;
    const auto message = ParseWireFormat(*part);
    if (!message) {
      problem = fmt::format("the {} {}", name, message.error());
      return true;
    }
    if (format == RecordFormat::kJsonSchema) {
      part = message->payload;
      return true;
    }
    const SchemaCache::Known* known = schemas_->Find(message->schema_id);
    if (known == nullptr) return false;
    const SchemaKind wanted =
        format == RecordFormat::kAvro ? SchemaKind::kAvro : SchemaKind::kProtobuf;
    if (known->decoder == nullptr) {
      problem = fmt::format("the {} cannot be decoded: {}", name, known->problem);
    } else if (known->kind != wanted) {
      problem = fmt::format("the {} is of schema {}, which is {}: kafka.decode.{} is {}", name,
                            message->schema_id, NameOf(known->kind), name,
                            wanted == SchemaKind::kAvro ? "avro" : "protobuf");
    } else if (const auto done = TryDecode(*known->decoder, message->payload, to); !done) {
      problem = fmt::format("the {} (schema {}) {}", name, message->schema_id, done.error());
    } else {
      part = to;
    }
    return true;
  }

  DecodeOptions options_;
  std::optional<SchemaCache> schemas_;
};

}  // namespace

std::unique_ptr<RecordDecoder> MakeRecordDecoder(const DecodeOptions& options) {
  if (!options.Needed()) return nullptr;
  return std::make_unique<RegistryDecoder>(options);
}

tl::expected<void, std::string> DecodeNow(RecordDecoder& decoder, Record& record, Millis limit) {
  constexpr Millis kTurn{10};
  for (Millis waited{0}; decoder.Decode({&record, 1}) == 0; waited += kTurn) {
    if (waited >= limit) {
      const std::string why = decoder.Trouble();
      return tl::unexpected("the schema registry gave no schema" + (why.empty() ? "" : ": " + why));
    }
    std::this_thread::sleep_for(kTurn);
  }
  return {};
}

}  // namespace fencepost::consumer
