#include <variant>

#include "config/schema/checks.h"
#include "config/schema/schema.h"
#include "config/schema/schema_lists.h"
#include "config/schema/schema_oauth.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options
using T = Type;

constexpr auto kDecode = [](auto& o) { return &o.kafka.decode; };
constexpr auto kKafkaOutput = [](auto& o) { return std::get_if<KafkaOutputOptions>(&o.output); };

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
  const KeysOf registry(path, Reach(to...));
  const KeysOf auth(path, Reach(to..., &RegistryOptions::auth));
  const KeysOf oauth(path + ".oauth2",
                     Reach(to..., &RegistryOptions::auth, &HttpAuthOptions::oauth));
  std::vector<Key> keys = {
      registry("url", &RegistryOptions::url,
               "Where its REST API is, such as `https://registry:8081`.",
               {.check = CheckHttpUrl, .required = true}),
      auth("username", &HttpAuthOptions::username, "User (basic authentication)."),
      auth("password", &HttpAuthOptions::password, "Its password.", {.empty_text = true}),
      auth("bearer", &HttpAuthOptions::bearer, "Instead: a token.", {.check = CheckBearer}),
      registry("headers", &RegistryOptions::headers,
               "Further headers of each request, such as `target-sr-cluster`.",
               {.check = CheckHttpHeader, .secret = true}),
      registry("tls", "How certificates are checked, and ours."),
      registry("tls.ca", &RegistryOptions::tls_ca,
               "File with the certificates that are trusted, instead of the system's."),
      registry("tls.certificate", &RegistryOptions::tls_certificate,
               "File with the client's certificate; with `key`."),
      registry("tls.key", &RegistryOptions::tls_key,
               "File with the client's key, without passphrase; with `certificate`."),
  };
  Append(keys, OauthKeys(oauth, "Instead: a token by OAuth's client credentials grant.",
                         "Where tokens come from."));
  if (!same_as.empty()) {
    for (Key& key : keys) key.same_as = same_as + key.path.substr(path.size());
  }
  return keys;
}

std::vector<Key> EncodePartKeys(const std::string& part, EncodePart EncodeOptions::*of) {
  const std::string path = "output.kafka.encode." + part;
  const bool value = part == "value";
  const KeysOf encode(path, Reach(kKafkaOutput, &KafkaOutputOptions::encode, of));
  std::vector<Key> keys = {
      encode("", value ? "How the value is written. Null stays a tombstone."
                       : "How the key is written. `key` is a text, and JSON where "
                         "`kafka.decode.key` made it so; `key:` is JSON."),
      encode(
          "format",
          OneOf(WireFormats(), kKafkaOutput, &KafkaOutputOptions::encode, of, &EncodePart::format),
          "The wire format of Confluent's serializers: a zero byte, the schema's id, the "
          "payload. A value that does not fit the schema makes the record bad. `json_schema` "
          "adds the header and checks nothing ([encode](../consumer/encode/README.md)).",
          {.required = true}),
      encode("subject", &EncodePart::subject, "The registry's subject.",
             {.default_words = value ? "the topic, then `-value`" : "the topic, then `-key`"}),
      encode(
          "version", &EncodePart::version, "The subject's version that is written.",
          {.default_words = "the newest when the worker starts", .limits = {{"1", "2147483647"}}}),
      encode("message", &EncodePart::message,
             "Of `protobuf`: the message's full name, such as `shop.Order`.",
             {.default_words = "the first of the schema"}),
      encode("schema", &EncodePart::schema,
             "The schema to write by, such as `${file:order.avsc}`; the subject must have it, or "
             "`register` is true.",
             {.lines = true}),
      encode("register", &EncodePart::register_schema,
             "Registers `schema` under the subject when the worker starts, if it is missing there "
             "and compatible."),
  };
  if (!value) {
    for (Key& key : keys) {
      if (key.path == path) continue;
      key.same_as = "output.kafka.encode.value" + key.path.substr(path.size());
    }
  }
  return keys;
}

// Several records of a value.
std::vector<Key> KafkaRecordKeys() {
  const std::string path = "output.kafka.records";
  const auto section = LastOf(kKafkaOutput, &KafkaOutputOptions::records);
  const KeysOf record(path, section);
  std::vector<Key> keys = {
      record("topic", &KafkaRecord::topic,
             "Topic; or a map, by which the record chooses one: `by` a selector, whose texts `of` "
             "maps to topics, and `otherwise`.",
             {.check = CheckTopic, .required = true, .or_section = true}),
      record("key", &KafkaRecord::key, "The key that is written."),
      record("value", &KafkaRecord::value,
             "The value that is written; or `{jq: PROGRAM}`, each of whose results is the value of "
             "a record.",
             {.or_section = true}),
      record("value.jq", &KafkaRecord::program,
             "A program over the value, as `handler.jq`; null is a tombstone.",
             {.required = true, .lines = true}),
      record("when", &KafkaRecord::when,
             "Which values have this record, as `when` of the pipeline.",
             {.or_texts = true, .lines = true}),
  };
  Append(keys, RouteKeys(path + ".topic", section));
  keys = OfList(std::move(keys));
  keys.insert(keys.begin(),
              record("", ListTarget(kKafkaOutput, &KafkaOutputOptions::records),
                     "Several records of a value, in this order and one transaction, instead of "
                     "`topic`, `key` and `value`. `headers` are those of all of them."));
  return keys;
}

}  // namespace

std::vector<Key> DecodeKeys() {
  const KeysOf decode("kafka.decode", kDecode);
  std::vector<Key> keys = {
      decode("",
             "How keys and values are encoded in Kafka. They are decoded first, so selectors, "
             "handlers and outputs see JSON. A record that cannot be decoded is bad; its dead "
             "letter keeps the original bytes. `tests:` give decoded values."),
      decode("value", OneOf(Formats(), kDecode, &DecodeOptions::value),
             "`avro`, `protobuf` and `json_schema` are Confluent's wire format (a zero byte, the "
             "schema's id, the payload) and become JSON ([rules](../consumer/decode/README.md)). "
             "`json` and `bytes` are taken as they are."),
      decode("key", OneOf(Formats(), kDecode, &DecodeOptions::key),
             "The same for the key. A text becomes a JSON string: `key` has its quotes, `key:` "
             "does not. `processing.order: key` uses the decoded key."),
      decode("registry",
             "The schema registry, for `avro` and `protobuf`. While it is unavailable records wait "
             "and the worker is not ready; an unknown schema id makes the record bad."),
  };
  Append(keys, RegistryKeys("kafka.decode.registry", "", kDecode, &DecodeOptions::registry));
  return keys;
}

std::vector<Key> KafkaOutputKeys() {
  const KeysOf kafka("output.kafka", kKafkaOutput);
  std::vector<Key> keys = {
      kafka("", Chosen(kKafkaOutput, [](PipelineOptions& o) { o.output = KafkaOutputOptions(); }),
            "A topic of the same cluster, in transactions with the offsets: each input position's "
            "output exactly once for `read_committed` readers. Either `topic`, or `records`.",
            {.ways = {{"topic"}, {"records"}}}),
      kafka("topic", &KafkaOutputOptions::topic,
            "Topic; on the same cluster none of `kafka.topics`.",
            {.check = CheckTopic, .basic = true}),
      kafka("key", &KafkaOutputOptions::key, "The key that is written."),
      kafka("value", &KafkaOutputOptions::value, "The value that is written."),
      kafka("headers", &KafkaOutputOptions::headers,
            "The record's own headers pass, but for those of dead letters and replays "
            "(`fencepost-…`). Names here are set, in the place of the record's own; `NAME: drop` "
            "leaves one out, `\"*\": drop` all.",
            {.default_words = "the record's own",
             .may_be_empty = true,
             .or_word = consumer::HeaderRules::kDrop}),
      kafka("transaction_timeout", &KafkaOutputOptions::transaction_timeout,
            "A worker that dies delays `read_committed` readers for up to this long.",
            {.limits = {{"1s", "15m"}}}),
      kafka("linger", &KafkaOutputOptions::linger,
            "A transaction ends when its oldest record is this old, or when it is full.",
            {.limits = {{"1ms", "1m"}}}),
      kafka("max_records", &KafkaOutputOptions::max_records,
            "Records of one transaction; then it is full.", {.limits = {{"1", "500000"}}}),
      kafka("encode",
            "Encodes keys and values by a schema of a registry. Without the schema at the start "
            "nothing is written and the worker is not ready; later it does not need the registry. "
            "`tests:` expect the JSON before encoding.",
            {.ways = {{"value"}, {"key"}}}),
  };
  Append(keys, KafkaRecordKeys());
  Append(keys, EncodePartKeys("value", &EncodeOptions::value));
  Append(keys, EncodePartKeys("key", &EncodeOptions::key));
  keys.push_back(kafka("encode.registry", "The schema registry.",
                       {.default_words = "`kafka.decode.registry`"}));
  Append(keys, RegistryKeys("output.kafka.encode.registry", "kafka.decode.registry", kKafkaOutput,
                            &KafkaOutputOptions::encode, &EncodeOptions::registry));
  Append(keys, OutputClusterKeys());
  return keys;
}

}  // namespace fencepost::config
