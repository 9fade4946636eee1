#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using T = Type;

// Of the section at `path`, without it.
std::vector<Key> RegistryKeys(const std::string& path, const std::string& same_as = "") {
  std::vector<Key> keys = {
      {.path = path + ".url",
       .help = "Where its REST API is, such as `https://registry:8081`.",
       .check = CheckHttpUrl,
       .required = true},
      {.path = path + ".username", .help = "User (basic authentication).", .check = CheckNotEmpty},
      {.path = path + ".password", .help = "Password.", .secret = true},
      {.path = path + ".tls",
       .type = T::kSection,
       .help = "Which certificates are trusted, if not the system's."},
      {.path = path + ".tls.ca",
       .help = "File with the certificates that are trusted.",
       .check = CheckNotEmpty,
       .required = true},
  };
  if (!same_as.empty()) {
    for (Key& key : keys) key.same_as = same_as + key.path.substr(path.size());
  }
  return keys;
}

std::vector<Key> EncodePartKeys(const std::string& part) {
  const std::string path = "output.kafka.encode." + part;
  const bool value = part == "value";
  std::vector<Key> keys = {
      {.path = path,
       .type = T::kSection,
       .help = value ? "How the value is written. Null stays a tombstone."
                     : "How the key is written. `key` is a text, and JSON where `kafka.decode.key` "
                       "made it so; `key:` is JSON."},
      {.path = path + ".format",
       .type = T::kChoice,
       .help = "The wire format of Confluent's serializers: a zero byte, the schema's id, the "
               "payload. A value that does not fit the schema makes the record bad. `json_schema` "
               "adds the header and checks nothing ([encode](../consumer/encode/README.md)).",
       .choices = {"avro", "protobuf", "json_schema"},
       .required = true},
      {.path = path + ".subject",
       .help = "The registry's subject.",
       .default_words = value ? "the topic, then `-value`" : "the topic, then `-key`",
       .check = CheckNotEmpty},
      {.path = path + ".version",
       .type = T::kInteger,
       .help = "The subject's version that is written.",
       .default_words = "the newest when the worker starts",
       .limits = {{"1", "2147483647"}}},
      {.path = path + ".message",
       .help = "Of `protobuf`: the message's full name, such as `shop.Order`.",
       .default_words = "the first of the schema",
       .check = CheckNotEmpty},
      {.path = path + ".schema",
       .help = "The schema to write by, such as `${file:order.avsc}`; the subject must have it, or "
               "`register` is true.",
       .check = CheckNotEmpty},
      {.path = path + ".register",
       .type = T::kBoolean,
       .help = "Registers `schema` under the subject when the worker starts, if it is missing "
               "there and compatible.",
       .default_value = "false"},
  };
  if (!value) {
    for (Key& key : keys) {
      if (key.path == path) continue;
      key.same_as = "output.kafka.encode.value" + key.path.substr(path.size());
    }
  }
  return keys;
}

void Append(std::vector<Key>& keys, std::vector<Key> more) {
  keys.insert(keys.end(), more.begin(), more.end());
}

}  // namespace

std::vector<Key> DecodeKeys() {
  std::vector<Key> keys = {
      {.path = "kafka.decode",
       .type = T::kSection,
       .help = "How keys and values are encoded in Kafka. They are decoded first, so selectors, "
               "handlers and outputs see JSON. A record that cannot be decoded is bad; its dead "
               "letter keeps the original bytes. `tests:` give decoded values."},
      {.path = "kafka.decode.value",
       .type = T::kChoice,
       .help = "`avro`, `protobuf` and `json_schema` are Confluent's wire format (a zero byte, the "
               "schema's id, the payload) and become JSON ([rules](../consumer/decode/README.md)). "
               "`json` and `bytes` are taken as they are.",
       .default_value = "json",
       .choices = {"avro", "protobuf", "json_schema", "json", "bytes"}},
      {.path = "kafka.decode.key",
       .type = T::kChoice,
       .help = "The same for the key. A text becomes a JSON string: `key` has its quotes, `key:` "
               "does not. `processing.order: key` uses the decoded key.",
       .default_value = "json",
       .choices = {"avro", "protobuf", "json_schema", "json", "bytes"}},
      {.path = "kafka.decode.registry",
       .type = T::kSection,
       .help = "The schema registry, for `avro` and `protobuf`. While it is unavailable records "
               "wait and the worker is not ready; an unknown schema id makes the record bad."},
  };
  Append(keys, RegistryKeys("kafka.decode.registry"));
  return keys;
}

std::vector<Key> EncodeKeys() {
  std::vector<Key> keys = {
      {.path = "output.kafka.encode",
       .type = T::kSection,
       .help = "Encodes keys and values by a schema of a registry. Without the schema at the start "
               "nothing is written and the worker is not ready; later it does not need the "
               "registry. `tests:` expect the JSON before encoding.",
       .ways = {{"value"}, {"key"}}},
  };
  Append(keys, EncodePartKeys("value"));
  Append(keys, EncodePartKeys("key"));
  keys.push_back({.path = "output.kafka.encode.registry",
                  .type = T::kSection,
                  .help = "The schema registry.",
                  .default_words = "`kafka.decode.registry`"});
  Append(keys, RegistryKeys("output.kafka.encode.registry", "kafka.decode.registry"));
  return keys;
}

}  // namespace fencepost::config
