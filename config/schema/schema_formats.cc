#include <variant>

#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options
using T = Type;

constexpr auto kDecode = [](auto& o) { return &o.kafka.decode; };
constexpr auto kOutput = [](auto& o) { return std::get_if<KafkaOutputOptions>(&o.output); };

std::vector<std::pair<std::string_view, RecordFormat>> WireFormats() {
  return {{"avro", RecordFormat::kAvro},
          {"protobuf", RecordFormat::kProtobuf},
          {"json_schema", RecordFormat::kJsonSchema}};
}
std::vector<std::pair<std::string_view, RecordFormat>> Formats() {
  auto formats = WireFormats();
  formats.emplace_back("json", RecordFormat::kJson);
  formats.emplace_back("bytes", RecordFormat::kBytes);
  return formats;
}

// Of the section at `path`, without it; `to` reaches its options.
template <typename... To>
std::vector<Key> RegistryKeys(const std::string& path, const std::string& same_as, To... to) {
  std::vector<Key> keys = {
      {.path = path + ".url",
       .to = At(to..., &RegistryOptions::url),
       .help = "Where its REST API is, such as `https://registry:8081`.",
       .check = CheckHttpUrl,
       .required = true},
      {.path = path + ".username",
       .to = At(to..., &RegistryOptions::username),
       .help = "User (basic authentication)."},
      {.path = path + ".password",
       .to = At(to..., &RegistryOptions::password),
       .help = "Password.",
       .secret = true,
       .empty_text = true},
      {.path = path + ".tls", .help = "Which certificates are trusted, if not the system's."},
      {.path = path + ".tls.ca",
       .to = At(to..., &RegistryOptions::tls_ca),
       .help = "File with the certificates that are trusted.",
       .required = true},
  };
  if (!same_as.empty()) {
    for (Key& key : keys) key.same_as = same_as + key.path.substr(path.size());
  }
  return keys;
}

std::vector<Key> EncodePartKeys(const std::string& part, EncodePart EncodeOptions::*of) {
  const std::string path = "output.kafka.encode." + part;
  const bool value = part == "value";
  const auto to = [&](auto member) { return At(kOutput, &KafkaOutputOptions::encode, of, member); };
  std::vector<Key> keys = {
      {.path = path,
       .help = value ? "How the value is written. Null stays a tombstone."
                     : "How the key is written. `key` is a text, and JSON where `kafka.decode.key` "
                       "made it so; `key:` is JSON."},
      {.path = path + ".format",
       .to = OneOf(WireFormats(), kOutput, &KafkaOutputOptions::encode, of, &EncodePart::format),
       .help = "The wire format of Confluent's serializers: a zero byte, the schema's id, the "
               "payload. A value that does not fit the schema makes the record bad. `json_schema` "
               "adds the header and checks nothing ([encode](../consumer/encode/README.md)).",
       .required = true},
      {.path = path + ".subject",
       .to = to(&EncodePart::subject),
       .help = "The registry's subject.",
       .default_words = value ? "the topic, then `-value`" : "the topic, then `-key`"},
      {.path = path + ".version",
       .to = to(&EncodePart::version),
       .help = "The subject's version that is written.",
       .default_words = "the newest when the worker starts",
       .limits = {{"1", "2147483647"}}},
      {.path = path + ".message",
       .to = to(&EncodePart::message),
       .help = "Of `protobuf`: the message's full name, such as `shop.Order`.",
       .default_words = "the first of the schema"},
      {.path = path + ".schema",
       .to = to(&EncodePart::schema),
       .help = "The schema to write by, such as `${file:order.avsc}`; the subject must have it, or "
               "`register` is true."},
      {.path = path + ".register",
       .to = to(&EncodePart::register_schema),
       .help = "Registers `schema` under the subject when the worker starts, if it is missing "
               "there and compatible."},
  };
  if (!value) {
    for (Key& key : keys) {
      if (key.path == path) continue;
      key.same_as = "output.kafka.encode.value" + key.path.substr(path.size());
    }
  }
  return keys;
}

}  // namespace

std::vector<Key> DecodeKeys() {
  std::vector<Key> keys = {
      {.path = "kafka.decode",
       .help = "How keys and values are encoded in Kafka. They are decoded first, so selectors, "
               "handlers and outputs see JSON. A record that cannot be decoded is bad; its dead "
               "letter keeps the original bytes. `tests:` give decoded values."},
      {.path = "kafka.decode.value",
       .to = OneOf(Formats(), kDecode, &DecodeOptions::value),
       .help = "`avro`, `protobuf` and `json_schema` are Confluent's wire format (a zero byte, the "
               "schema's id, the payload) and become JSON ([rules](../consumer/decode/README.md)). "
               "`json` and `bytes` are taken as they are."},
      {.path = "kafka.decode.key",
       .to = OneOf(Formats(), kDecode, &DecodeOptions::key),
       .help = "The same for the key. A text becomes a JSON string: `key` has its quotes, `key:` "
               "does not. `processing.order: key` uses the decoded key."},
      {.path = "kafka.decode.registry",
       .help = "The schema registry, for `avro` and `protobuf`. While it is unavailable records "
               "wait and the worker is not ready; an unknown schema id makes the record bad."},
  };
  Append(keys, RegistryKeys("kafka.decode.registry", "", kDecode, &DecodeOptions::registry));
  return keys;
}

std::vector<Key> KafkaOutputKeys() {
  std::vector<Key> keys = {
      {.path = "output.kafka",
       .to = Chosen(kOutput, [](PipelineOptions& o) { o.output = KafkaOutputOptions(); }),
       .help = "A topic of the same cluster, in transactions with the offsets: each input "
               "position's output exactly once for `read_committed` readers."},
      {.path = "output.kafka.topic",
       .to = At(kOutput, &KafkaOutputOptions::topic),
       .help = "Topic; none of `kafka.topics`.",
       .check = CheckTopic,
       .required = true,
       .basic = true},
      {.path = "output.kafka.key",
       .to = At(kOutput, &KafkaOutputOptions::key),
       .help = "The key that is written."},
      {.path = "output.kafka.value",
       .to = At(kOutput, &KafkaOutputOptions::value),
       .help = "The value that is written."},
      {.path = "output.kafka.headers",
       .to = At(kOutput, &KafkaOutputOptions::headers),
       .help = "Header names, and the selector whose value each gets.",
       .may_be_empty = true},
      {.path = "output.kafka.transaction_timeout",
       .to = At(kOutput, &KafkaOutputOptions::transaction_timeout),
       .help = "A worker that dies delays `read_committed` readers for up to this long.",
       .limits = {{"1s", "15m"}}},
      {.path = "output.kafka.linger",
       .to = At(kOutput, &KafkaOutputOptions::linger),
       .help = "A transaction ends when its oldest record is this old, or when it is full.",
       .limits = {{"1ms", "1m"}}},
      {.path = "output.kafka.max_records",
       .to = At(kOutput, &KafkaOutputOptions::max_records),
       .help = "Records of one transaction; then it is full.",
       .limits = {{"1", "500000"}}},
      {.path = "output.kafka.encode",
       .help = "Encodes keys and values by a schema of a registry. Without the schema at the start "
               "nothing is written and the worker is not ready; later it does not need the "
               "registry. `tests:` expect the JSON before encoding.",
       .ways = {{"value"}, {"key"}}},
  };
  Append(keys, EncodePartKeys("value", &EncodeOptions::value));
  Append(keys, EncodePartKeys("key", &EncodeOptions::key));
  keys.push_back({.path = "output.kafka.encode.registry",
                  .help = "The schema registry.",
                  .default_words = "`kafka.decode.registry`"});
  Append(keys, RegistryKeys("output.kafka.encode.registry", "kafka.decode.registry", kOutput,
                            &KafkaOutputOptions::encode, &EncodeOptions::registry));
  return keys;
}

}  // namespace fencepost::config
