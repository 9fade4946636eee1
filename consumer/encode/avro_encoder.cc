// Avro's binary encoding, written along the schema from JSON.
//
// Of a union it is the first type that takes the value as it is: bytes only where no other takes a
// text, and what has to be read in another way (digits in a string as a number, a number as a date,
// a number with more digits than the type holds) only where nothing else fits.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/decode/avro_schema.h"
#include "consumer/decode/wire_format.h"
#include "consumer/encode/avro_values.h"
#include "consumer/encode/encoder.h"
#include "consumer/encode/json_tree.h"
#include "consumer/json/json_digest.h"
#include "consumer/json/json_reader.h"
#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using AvroKind = avro::Kind;
using avro::Logical;
using avro::Type;
using JsonKind = JsonValue::Kind;

// How values are read.
enum class Reading : std::uint8_t {
  kAsItIs,   // each JSON type as the Avro type that stands for it
  kLenient,  // and digits in a string as a number, a number as a date or time
  kDefault   // a schema's default: without logical types, bytes as code points
};

// What the encoder knows of a record type, made when it is met first.
struct Fields {
  std::unordered_map<std::string, std::size_t> by_name;
  std::vector<std::string> names;
  std::vector<std::optional<std::string>> defaults;  // encoded, once they were needed
};
using FieldsOf = std::map<const Type*, Fields>;

// One value on its way into bytes. Every method says whether it went well; if not, Problem() is
// why, of the first that did not.
class EncodeWalk {
 public:
  // `text`: the JSON's size, of which `values` came.
  EncodeWalk(FieldsOf& fields, std::size_t text, std::size_t values, std::string& out)
      : fields_(fields),
        steps_(kSteps + values * kStepsOfAValue),
        out_(out),
        most_(out.size() + MaxJsonOf(text)) {}

  bool Value(const Type& type, const JsonValue& value, Reading reading) {
    if (path_.size() > static_cast<std::size_t>(kMaxDepth)) return Fail("is nested too deeply");
    if (steps_ == 0) return false;
    --steps_;
    if (out_.size() > most_) return GiveUp("becomes too many bytes (its schema's default values)");
    switch (type.kind) {
      case AvroKind::kNull:
        return value.kind == JsonKind::kNull || Mismatch(type, value);
      case AvroKind::kBoolean:
        return Boolean(type, value);
      case AvroKind::kInt:
      case AvroKind::kLong:
        return Integer(type, value, reading);
      case AvroKind::kFloat:
        return Float<float, std::uint32_t>(type, value, reading);
      case AvroKind::kDouble:
        return Float<double, std::uint64_t>(type, value, reading);
      case AvroKind::kBytes:
      case AvroKind::kFixed:
        return Bytes(type, value, reading);
      case AvroKind::kString:
        return String(type, value, reading);
      case AvroKind::kEnum:
        return Enum(type, value);
      case AvroKind::kUnion:
        return Union(type, value, reading);
      case AvroKind::kRecord:
        return Record(type, value, reading);
      case AvroKind::kArray:
      case AvroKind::kMap:
        return Items(type, value, reading);
    }
    return Fail("is of no known type");
  }

  [[nodiscard]] EncodeProblem Problem() const {
    if (steps_ > 0) return problem_;
    return {.detail = std::string(given_up_), .shown = std::string(given_up_)};
  }

 private:
  // A bound for unions within unions, which are tried one after the other.
  static constexpr std::size_t kSteps = 10'000;
  static constexpr std::size_t kStepsOfAValue = 100;

  struct Step {
    std::string_view name;  // empty: an element
    std::size_t index = 0;
    bool of_record = true;  // the name is the schema's, and not the record's own
  };

  [[nodiscard]] std::string Path(bool shown) const {
    std::string path;
    for (const Step& step : path_) {
      path.push_back('/');
      if (step.name.empty()) {
        path += std::to_string(step.index);
      } else if (step.of_record || !shown) {
        AppendPointerToken(step.name, path);
      } else {
        path.push_back('*');
      }
    }
    return path.empty() ? path : OneLine("at " + path, 300) + " ";
  }
  bool Fail(std::string_view what) {
    if (!problem_.shown.empty()) return false;
    problem_.shown = Path(true).append(what);
    problem_.detail = Path(false).append(what);
    return false;
  }
  // Of unions, too, no other type is tried.
  bool GiveUp(std::string_view why) {
    given_up_ = why;
    steps_ = 0;
    return false;
  }
  bool FailAt(std::string_view name, std::string_view what) {
    path_.push_back({.name = name, .of_record = false});
    Fail(what);
    return Left();
  }
  // Within a union the walk goes on after a failure.
  bool Left() {
    path_.pop_back();
    return false;
  }
  bool Mismatch(const Type& type, const JsonValue& value) {
    return Fail(
        fmt::format("is {}, and the schema has {}", NameOf(value.kind), avro::NameOf(type)));
  }

  void Long(std::int64_t number) { AppendZigzag(number, out_); }
  void Sized(std::string_view bytes) {
    Long(static_cast<std::int64_t>(bytes.size()));
    out_.append(bytes);
  }

  bool Boolean(const Type& type, const JsonValue& value) {
    if (value.kind != JsonKind::kTrue && value.kind != JsonKind::kFalse)
      return Mismatch(type, value);
    out_.push_back(value.kind == JsonKind::kTrue ? '\1' : '\0');
    return true;
  }

  static bool IsNumber(const JsonValue& value, Reading reading) {
    return value.kind == JsonKind::kNumber ||
           (reading == Reading::kLenient && value.kind == JsonKind::kString &&
            IsJsonNumber(value.text));
  }

  bool Integer(const Type& type, const JsonValue& value, Reading reading) {
    using Int = std::numeric_limits<std::int32_t>;
    using Int64 = std::numeric_limits<std::int64_t>;
    const bool moment = type.logical == Logical::kMoment && reading != Reading::kDefault;
    if (moment && value.kind == JsonKind::kString) {
      const auto units = avro::UnitsOf(value.text, type.moment);
      if (!units) return Fail(units.error());
      if (type.kind == AvroKind::kInt && (*units < Int::min() || *units > Int::max())) {
        return Fail("is a time out of the type's range");
      }
      Long(*units);
      return true;
    }
    if (!IsNumber(value, reading) || (moment && reading == Reading::kAsItIs)) {
      return Mismatch(type, value);
    }
    const bool small = type.kind == AvroKind::kInt;
    const auto number = WholeNumber(value.text, small ? Int::min() : Int64::min(),
                                    small ? Int::max() : Int64::max());
    if (!number) return Fail(number.error());
    Long(*number);
    return true;
  }

  template <typename Number>
  static std::optional<Number> NotFinite(const JsonValue& value) {
    using Limits = std::numeric_limits<Number>;
    if (value.kind != JsonKind::kString) return std::nullopt;
    if (value.text == "NaN") return Limits::quiet_NaN();
    if (value.text == "Infinity") return Limits::infinity();
    if (value.text == "-Infinity") return -Limits::infinity();
    return std::nullopt;
  }

  template <typename Number>
  static tl::expected<Number, std::string> Nearest(std::string_view text) {
    Number number{};
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && at == text.data() + text.size()) return number;
    return tl::unexpected<std::string>("is a number out of the type's range");
  }

  template <typename Number, typename Bits>
  bool Float(const Type& type, const JsonValue& value, Reading reading) {
    auto number = NotFinite<Number>(value);
    if (!number) {
      if (value.kind != JsonKind::kNumber) return Mismatch(type, value);
      auto read = FloatOf<Number>(value.text);
      // A schema's author writes 3.14159265358979 of a float, too.
      if (!read && reading == Reading::kDefault) read = Nearest<Number>(value.text);
      if (!read) return Fail(read.error());
      number = *read;
    }
    auto bits = std::bit_cast<Bits>(*number);
    for (std::size_t i = 0; i < sizeof(Bits); ++i) {
      out_.push_back(static_cast<char>(bits & 0xff));
      bits >>= 8;
    }
    return true;
  }

  bool Bytes(const Type& type, const JsonValue& value, Reading reading) {
    tl::expected<std::string, std::string> bytes;
    if (reading == Reading::kDefault) {
      if (value.kind != JsonKind::kString) return Mismatch(type, value);
      bytes = avro::CodePointBytes(value.text);
    } else if (type.logical == Logical::kDecimal) {
      if (!IsNumber(value, reading)) return Mismatch(type, value);
      bytes = avro::DecimalBytes(value.text, type.precision, type.scale);
      if (bytes && type.kind == AvroKind::kFixed) bytes = avro::Widened(*bytes, type.size);
    } else {
      if (value.kind != JsonKind::kString) return Mismatch(type, value);
      bytes = type.logical == Logical::kUuid ? avro::UuidBytes(value.text)
                                             : Decoded(value.text, Conversion::kBase64);
    }
    if (!bytes) return Fail(bytes.error());
    if (type.kind == AvroKind::kBytes) {
      Sized(*bytes);
    } else if (bytes->size() == type.size) {
      out_ += *bytes;
    } else {
      return Fail(fmt::format("has not the {} bytes of the type", type.size));
    }
    return true;
  }
  bool String(const Type& type, const JsonValue& value, Reading reading) {
    if (value.kind != JsonKind::kString) return Mismatch(type, value);
    if (type.logical == Logical::kUuid && reading != Reading::kDefault) {
      if (const auto uuid = avro::UuidBytes(value.text); !uuid) return Fail(uuid.error());
    }
    Sized(value.text);
    return true;
  }

  Fields& FieldsAt(const Type& type) {
    const auto [found, is_new] = fields_.try_emplace(&type);
    Fields& fields = found->second;
    if (!is_new) return fields;
    for (const std::string& quoted : type.names) {
      fields.names.push_back(nlohmann::json::parse(quoted).get<std::string>());
      fields.by_name.emplace(fields.names.back(), fields.names.size() - 1);
    }
    fields.defaults.resize(fields.names.size());
    return fields;
  }

  bool Enum(const Type& type, const JsonValue& value) {
    if (value.kind != JsonKind::kString) return Mismatch(type, value);
    const auto& symbols = FieldsAt(type).by_name;
    const auto found = symbols.find(value.text);
    if (found == symbols.end()) return Fail("is none of the enum's symbols");
    Long(static_cast<std::int64_t>(found->second));
    return true;
  }

  // Texts of any content: last among a union's types.
  static bool TakesAnyBytes(const Type& type) {
    return (type.kind == AvroKind::kBytes || type.kind == AvroKind::kFixed) &&
           type.logical == Logical::kNone;
  }

  bool Union(const Type& type, const JsonValue& value, Reading reading) {
    if (TryUnion(type, value, reading == Reading::kDefault ? reading : Reading::kAsItIs))
      return true;
    if (reading == Reading::kLenient && TryUnion(type, value, reading)) return true;
    // With null and one other type it is that one which says what is wrong.
    const Type* only = nullptr;
    for (const Type* branch : type.members) {
      if (branch->kind == AvroKind::kNull) continue;
      if (only != nullptr) return Fail("fits none of the union's types");
      only = branch;
    }
    return only != nullptr && value.kind != JsonKind::kNull
               ? Value(*only, value, reading)
               : Fail("fits none of the union's types");
  }
  bool TryUnion(const Type& type, const JsonValue& value, Reading reading) {
    const std::size_t before = out_.size();
    for (const bool bytes : {false, true}) {
      for (std::size_t i = 0; i < type.members.size(); ++i) {
        if (TakesAnyBytes(*type.members[i]) != bytes) continue;
        const EncodeProblem so_far = problem_;
        Long(static_cast<std::int64_t>(i));
        if (Value(*type.members[i], value, reading)) return true;
        if (steps_ == 0) return false;
        problem_ = so_far;
        out_.resize(before);
      }
    }
    return false;
  }

  bool Record(const Type& type, const JsonValue& value, Reading reading) {
    if (value.kind != JsonKind::kObject) return Mismatch(type, value);
    Fields& fields = FieldsAt(type);
    std::vector<const JsonValue*> given(type.members.size());
    for (std::size_t i = 0; i < value.names.size(); ++i) {
      const auto field = fields.by_name.find(value.names[i]);
      if (field == fields.by_name.end()) {
        return FailAt(value.names[i], "is a field that the schema does not have");
      }
      given[field->second] = &value.members[i];
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      path_.push_back({.name = fields.names[i]});
      const Type& of = *type.members[i];
      if (given[i] == nullptr ? !Missing(type, i) : !Value(of, *given[i], reading)) return Left();
      path_.pop_back();
    }
    return true;
  }
  bool Missing(const Type& type, std::size_t i) {
    std::optional<std::string>& known = FieldsAt(type).defaults[i];
    if (!known && type.defaults[i]) {
      const auto tree = ParseJsonTree(*type.defaults[i]);
      std::string bytes;
      EncodeWalk walk(fields_, type.defaults[i]->size(), tree ? tree->values : 0, bytes);
      walk.path_ = path_;
      if (!tree || !walk.Value(*type.members[i], tree->top, Reading::kDefault)) {
        return Fail("is missing, and its default does not fit the schema");
      }
      known = std::move(bytes);
    }
    if (known) {
      out_ += *known;
      return true;
    }
    return Null(*type.members[i]) || Fail("is missing");
  }

  // Where the type takes null.
  bool Null(const Type& type) {
    if (type.kind == AvroKind::kNull) return true;
    if (type.kind != AvroKind::kUnion) return false;
    const auto branch = std::ranges::find(type.members, AvroKind::kNull, &Type::kind);
    if (branch == type.members.end()) return false;
    Long(branch - type.members.begin());
    return true;
  }

  bool Items(const Type& type, const JsonValue& value, Reading reading) {
    const bool map = type.kind == AvroKind::kMap;
    if (value.kind != (map ? JsonKind::kObject : JsonKind::kArray)) return Mismatch(type, value);
    if (!value.members.empty()) Long(static_cast<std::int64_t>(value.members.size()));
    for (std::size_t i = 0; i < value.members.size(); ++i) {
      path_.push_back(map ? Step{.name = value.names[i], .of_record = false} : Step{.index = i});
      if (map) Sized(value.names[i]);
      if (!Value(*type.members[0], value.members[i], reading)) return Left();
      path_.pop_back();
    }
    Long(0);
    return true;
  }

  FieldsOf& fields_;
  std::size_t steps_;
  std::string_view given_up_ = "takes too many tries to find the types of its unions";
  std::string& out_;
  const std::size_t most_;  // then `out_` is too large
  std::vector<Step> path_;
  EncodeProblem problem_;
};

class AvroEncoder : public Encoder {
 public:
  explicit AvroEncoder(avro::Schema schema) : schema_(std::move(schema)) {}

  tl::expected<void, EncodeProblem> Encode(std::string_view json, std::string& payload) override {
    const auto tree = ParseJsonTree(json);
    if (!tree) return tl::unexpected(EncodeProblem{.detail = tree.error(), .shown = tree.error()});
    EncodeWalk walk(fields_, json.size(), tree->values, payload);
    if (walk.Value(schema_.top(), tree->top, Reading::kLenient)) return {};
    return tl::unexpected(walk.Problem());
  }

 private:
  avro::Schema schema_;
  FieldsOf fields_;
};

}  // namespace

MadeEncoder MakeAvroEncoder(const SchemaText& schema) {
  auto parsed = avro::Schema::Parse(schema);
  if (!parsed) return tl::unexpected<std::string>(parsed.error());
  return std::make_unique<AvroEncoder>(std::move(*parsed));
}

}  // namespace fencepost::consumer
