// Avro's binary encoding, read along its schema into JSON. Not by libavro (C, 1.11): it follows
// nested records without a limit (a small record can overflow the stack), believes lengths before
// the bytes are there, and keeps the memory where they are not.
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/decode/avro_schema.h"
#include "consumer/decode/avro_text.h"
#include "consumer/decode/byte_reader.h"
#include "consumer/decode/decoder.h"
#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

using avro::Kind;
using avro::Logical;
using avro::Type;

// One value on its way into JSON. Every method says whether it went well; if not, problem() is why.
class DecodeWalk {
 public:
  DecodeWalk(std::string_view payload, std::string& out)
      : in_(payload), out_(out), most_(out.size() + MaxJsonOf(payload.size())) {}

  bool Value(const Type& type, int depth) {
    if (depth > kMaxDepth) return Fail("is nested too deeply");
    if (out_.size() > most_) return Fail("becomes too much JSON");
    switch (type.kind) {
      case Kind::kNull:
        out_ += "null";
        return true;
      case Kind::kBoolean:
        return Boolean();
      case Kind::kInt:
      case Kind::kLong:
        return Integer(type);
      case Kind::kFloat:
        return Float<float, std::uint32_t>();
      case Kind::kDouble:
        return Float<double, std::uint64_t>();
      case Kind::kBytes:
      case Kind::kString:
        return Text(type, in_.Bytes());
      case Kind::kFixed:
        return Text(type, in_.Take(type.size));
      case Kind::kEnum:
        return Enum(type);
      case Kind::kUnion:
        return Union(type, depth);
      case Kind::kRecord:
        return Record(type, depth);
      case Kind::kArray:
        return Blocks(type, '[', ']', depth);
      case Kind::kMap:
        return Blocks(type, '{', '}', depth);
    }
    return Fail("is of no known type");
  }

  bool End() { return in_.rest().empty() || Fail("has bytes left over"); }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  bool Fail(std::string_view what) {
    if (problem_.empty()) problem_ = fmt::format("{} (at byte {} of the payload)", what, in_.at());
    return false;
  }
  bool CutOff() { return Fail("is cut off, or is not of this schema"); }

  bool Boolean() {
    const auto byte = in_.Take(1);
    if (!byte || static_cast<unsigned char>(byte->front()) > 1) return CutOff();
    out_ += byte->front() == '\0' ? "false" : "true";
    return true;
  }

  bool Integer(const Type& type) {
    const auto number = in_.Long();
    if (!number) return CutOff();
    const bool fits = *number >= std::numeric_limits<std::int32_t>::min() &&
                      *number <= std::numeric_limits<std::int32_t>::max();
    if (type.kind == Kind::kInt && !fits) return Fail("has an int of more than 32 bits");
    if (type.logical == Logical::kMoment) return Moment(type.moment, *number);
    fmt::format_to(std::back_inserter(out_), "{}", *number);
    return true;
  }

  bool Moment(const avro::MomentForm& form, std::int64_t number) {
    out_.push_back('"');
    if (!avro::AppendMoment(number, form, out_)) {
      return Fail("has a date or time that is out of range");
    }
    out_.push_back('"');
    return true;
  }

  // JSON has no number for what is not finite; the names are those of the proto3 JSON mapping.
  template <typename Number, typename Bits>
  bool Float() {
    const auto bytes = in_.Take(sizeof(Bits));
    if (!bytes) return CutOff();
    Bits bits = 0;
    for (std::size_t i = sizeof(Bits); i-- > 0;) {
      bits = static_cast<Bits>(bits << 8 | static_cast<unsigned char>((*bytes)[i]));
    }
    const auto number = std::bit_cast<Number>(bits);
    if (std::isnan(number)) {
      out_ += "\"NaN\"";
    } else if (std::isinf(number)) {
      out_ += number < 0 ? "\"-Infinity\"" : "\"Infinity\"";
    } else {
      fmt::format_to(std::back_inserter(out_), "{}",
                     number);  // the shortest that reads as the same
    }
    return true;
  }

  bool Text(const Type& type, std::optional<std::string_view> bytes) {
    if (!bytes) return CutOff();
    if (type.logical == Logical::kDecimal) {
      return avro::AppendDecimal(*bytes, type.scale, out_) || Fail("has too long a decimal");
    }
    if (type.kind == Kind::kString) return String(*bytes);
    out_.push_back('"');
    if (type.logical == Logical::kUuid) {
      avro::AppendUuid(*bytes, out_);
    } else {
      out_ += ToBase64(*bytes);
    }
    out_.push_back('"');
    return true;
  }

  bool String(std::string_view text) {
    if (!simdjson::validate_utf8(text.data(), text.size())) {
      return Fail("has a string that is not UTF-8");
    }
    AppendJsonString(text, out_);
    return true;
  }

  // Its place in a list of the schema.
  std::optional<std::size_t> Index(std::size_t size) {
    const auto index = in_.Long();
    if (!index || *index < 0 || static_cast<std::uint64_t>(*index) >= size) return std::nullopt;
    return static_cast<std::size_t>(*index);
  }

  bool Enum(const Type& type) {
    const auto index = Index(type.names.size());
    if (!index) return CutOff();
    out_ += type.names[*index];
    return true;
  }

  bool Union(const Type& type, int depth) {
    const auto index = Index(type.members.size());
    return index ? Value(*type.members[*index], depth + 1) : CutOff();
  }

  bool Record(const Type& type, int depth) {
    out_.push_back('{');
    for (std::size_t i = 0; i < type.members.size(); ++i) {
      if (i > 0) out_.push_back(',');
      out_.append(type.names[i]).push_back(':');
      if (!Value(*type.members[i], depth + 1)) return false;
    }
    out_.push_back('}');
    return true;
  }

  // Blocks of items, each behind their number; of a negative one the block's size in bytes follows.
  bool Blocks(const Type& type, char open, char close, int depth) {
    out_.push_back(open);
    for (bool first = true;;) {
      auto count = in_.Long();
      if (!count || *count == std::numeric_limits<std::int64_t>::min()) return CutOff();
      if (*count == 0) break;
      if (*count < 0 && !in_.Long()) return CutOff();
      for (std::int64_t left = *count < 0 ? -*count : *count; left > 0; --left, first = false) {
        if (!first) out_.push_back(',');
        if (type.kind == Kind::kMap) {
          const auto name = in_.Bytes();
          if (!name) return CutOff();
          if (!String(*name)) return false;
          out_.push_back(':');
        }
        if (!Value(*type.members[0], depth + 1)) return false;
      }
    }
    out_.push_back(close);
    return true;
  }

  ByteReader in_;
  std::string& out_;
  const std::size_t most_;  // then `out_` is too large
  std::string problem_;
};

class AvroDecoder : public Decoder {
 public:
  explicit AvroDecoder(avro::Schema schema) : schema_(std::move(schema)) {}

  tl::expected<void, std::string> Decode(std::string_view payload, std::string& json) override {
    DecodeWalk walk(payload, json);
    if (walk.Value(schema_.top(), 0) && walk.End()) return {};
    return tl::unexpected<std::string>(walk.problem());
  }

 private:
  avro::Schema schema_;
};

}  // namespace

MadeDecoder MakeAvroDecoder(const SchemaText& schema) {
  auto parsed = avro::Schema::Parse(schema);
  if (!parsed) return tl::unexpected<std::string>(parsed.error());
  return std::make_unique<AvroDecoder>(std::move(*parsed));
}

}  // namespace fencepost::consumer
