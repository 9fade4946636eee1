// What holds for all that is decoded by a registered schema (consumer/decode): JSON within its
// bound, or one line of error; and where that JSON can be encoded again, its bytes say the same.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "consumer/decode/decoder.h"
#include "consumer/decode/wire_format.h"
#include "consumer/encode/encoder.h"
#include "consumer/json/json_reader.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {

struct Codec {
  std::unique_ptr<consumer::Decoder> decoder;
  std::unique_ptr<consumer::Encoder> encoder;  // nullptr: what is decoded is not encoded again
};

// A map may come with a key twice, which JSON refuses.
inline std::uint64_t DigestOf(const std::string& json) {
  static consumer::JsonReader reader;
  std::uint64_t digest = 0;
  reader.Begin(json);
  FENCEPOST_CHECK(reader.Digest("", digest) != consumer::JsonFound::kMalformed ||
                      reader.problem() == "an object has a name twice",
                  reader.problem() + ": " + Shown(json));
  return digest;
}

inline void CheckDecoded(Codec& codec, std::string_view payload) {
  std::string json = "before";
  const auto done = codec.decoder->Decode(payload, json);
  if (!done) {
    FENCEPOST_CHECK(!done.error().empty() && IsOneLine(done.error()), Shown(done.error()));
    return;
  }
  FENCEPOST_CHECK(json.starts_with("before"), Shown(json));
  json.erase(0, 6);
  // The bound is looked at between two values, each of which may take what a payload has.
  FENCEPOST_CHECK(json.size() <= consumer::MaxJsonOf(payload.size()) + 8 * payload.size() + 8192,
                  Shown(payload));
  const std::uint64_t digest = DigestOf(json);
  if (codec.encoder == nullptr) return;
  std::string again;
  const auto encoded = codec.encoder->Encode(json, again);
  if (!encoded) {
    FENCEPOST_CHECK(IsOneLine(encoded.error().detail) && IsOneLine(encoded.error().shown),
                    Shown(encoded.error().detail));
    return;
  }
  std::string second;
  const auto decoded = codec.decoder->Decode(again, second);
  FENCEPOST_CHECK(decoded.has_value(), decoded.error() + ": " + Shown(json));
  if (DigestOf(second) == digest) return;
  // A float has several decimals: 9007199254740992 is 9007199000000000. Its bytes are the same.
  std::string same;
  FENCEPOST_CHECK(codec.encoder->Encode(second, same).has_value() && same == again,
                  Shown(json) + " became " + Shown(second));
}

// The header of the wire format; the payload behind it, or nothing.
inline std::string_view PayloadOf(std::string_view input, std::uint32_t& schema_id) {
  const auto message = consumer::ParseWireFormat(input);
  if (!message) {
    FENCEPOST_CHECK(IsOneLine(message.error()), Shown(message.error()));
    return {};
  }
  std::string again;
  consumer::AppendWireHeader(message->schema_id, again);
  FENCEPOST_CHECK(again.append(message->payload) == input, Shown(input));
  schema_id = message->schema_id;
  return message->payload;
}

}  // namespace fencepost::fuzz
