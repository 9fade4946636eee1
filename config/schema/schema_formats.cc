#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {
namespace {

using T = Type;

// Of the section at `path`, without it.
std::vector<Key> RegistryKeys(const std::string& path) {
  return {
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
}

std::vector<Key> EncodePartKeys(const std::string& part) {
  const std::string path = "output.kafka.encode." + part;
  const bool value = part == "value";
  return {
      {.path = path,
       .type = T::kSection,
       .help = value ? "How the value is written. Null stays a tombstone."
                     : "How the key is written. `key` is a text, and JSON where `kafka.decode.key` "
                       "made it so; `key:` is JSON."},
      {.path = path + ".format",
       .type = T::kChoice,
       .help = "In the wire format of Confluent's serializers: a zero byte, the id of the schema, "
               "the payload. `avro` and `protobuf` take the JSON that `kafka.decode` makes of "
               "them; of `json_schema` the header is put on, and nothing is checked against the "
               "schema. What does not fit the schema makes the record bad (`on_bad_record`): a "
               "field that it does not have, one that is missing without a default, digits that "
               "would be lost.",
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
       .help = "The schema itself, such as `${file:order.avsc}`, where it shall not be the "
               "subject's newest: the subject has to have it, or `register`.",
       .check = CheckNotEmpty},
      {.path = path + ".register",
       .type = T::kBoolean,
       .help = "Registers `schema` under the subject when the worker starts, where it is not there "
               "and the registry takes it as compatible.",
       .default_value = "false"},
  };
}

void Append(std::vector<Key>& keys, std::vector<Key> more) {
  keys.insert(keys.end(), more.begin(), more.end());
}

}  // namespace

std::vector<Key> DecodeKeys() {
  std::vector<Key> keys = {
      {.path = "kafka.decode",
       .type = T::kSection,
       .help = "How keys and values are written, where they are not plain JSON or bytes: they are "
               "decoded before anything else looks at them, so that selectors, handlers and "
               "outputs see JSON; a record that is passed on without a handler is JSON, too. Dead "
               "letters keep the original bytes. A record that cannot be "
               "decoded is bad (`on_bad_record`). What `tests:` give is taken as decoded."},
      {.path = "kafka.decode.value",
       .type = T::kChoice,
       .help = "`avro`, `protobuf` and `json_schema` are in the wire format of Confluent's "
               "serializers: a zero byte, the id of a schema, the payload. Of `avro`, a `decimal` "
               "becomes a number with all its digits, dates and times become RFC 3339 texts, bytes "
               "become base64, a union the value itself. Of `protobuf`, names are those of the "
               ".proto file, default values are there, and 64-bit integers are strings (the proto3 "
               "JSON mapping). Of `json_schema`, the header is taken off and nothing is checked. "
               "`json` and `bytes` are taken as they are.",
       .default_value = "json",
       .choices = {"avro", "protobuf", "json_schema", "json", "bytes"}},
      {.path = "kafka.decode.key",
       .type = T::kChoice,
       .help =
           "The same of the key. A text becomes a JSON string: `key` is with its quotes, `key:` "
           "without. `processing.order: key` goes by the decoded key.",
       .default_value = "json",
       .choices = {"avro", "protobuf", "json_schema", "json", "bytes"}},
      {.path = "kafka.decode.registry",
       .type = T::kSection,
       .help =
           "The schema registry, for `avro` and `protobuf`. While it is unavailable (no answer, "
           "5xx, 429, 401, 403) records wait and the worker is not ready; a schema id that it "
           "does not know makes a record bad."},
  };
  Append(keys, RegistryKeys("kafka.decode.registry"));
  return keys;
}

std::vector<Key> EncodeKeys() {
  std::vector<Key> keys = {
      {.path = "output.kafka.encode",
       .type = T::kSection,
       .help =
           "Writes keys and values by a schema that a schema registry has. While the registry "
           "is unavailable, or does not have it, nothing is written and the worker is not "
           "ready; a worker that has started needs the registry no more. What `tests:` expect is "
           "what goes in, as JSON.",
       .ways = {{"value"}, {"key"}}},
  };
  Append(keys, EncodePartKeys("value"));
  Append(keys, EncodePartKeys("key"));
  keys.push_back({.path = "output.kafka.encode.registry",
                  .type = T::kSection,
                  .help = "The schema registry.",
                  .default_words = "`kafka.decode.registry`"});
  Append(keys, RegistryKeys("output.kafka.encode.registry"));
  return keys;
}

}  // namespace fencepost::config
