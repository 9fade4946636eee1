// An Avro schema as a graph of types: names resolved, logical types kept. Made once from its JSON;
// then read by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/decode/decoder.h"

namespace fencepost::consumer::avro {

enum class Kind : std::uint8_t {
  kNull,
  kBoolean,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kBytes,
  kString,
  kRecord,
  kEnum,
  kArray,
  kMap,
  kUnion,
  kFixed
};

// Where the specification has one ignored (a decimal without a precision, a date that is a long),
// it is none. kMoment: a date, time or timestamp; kUuid: of a string, or of 16 bytes.
enum class Logical : std::uint8_t { kNone, kDecimal, kMoment, kUuid };

// How what a kMoment counts is written.
struct MomentForm {
  bool date = false, time = false, utc = false;  // utc: with a Z behind it
  int digits = 0;                                // behind the second's point
  [[nodiscard]] constexpr std::int64_t UnitsOfSecond() const {
    std::int64_t units = 1;
    for (int i = 0; i < digits; ++i) units *= 10;
    return units;
  }
};

struct Type {
  Kind kind = Kind::kNull;
  Logical logical = Logical::kNone;
  MomentForm moment;                     // kMoment
  std::size_t precision = 0, scale = 0;  // kDecimal
  std::size_t size = 0;                  // kFixed
  std::vector<std::string> names;        // kEnum: symbols, kRecord: fields; both as JSON strings
  std::vector<const Type*> members;      // kRecord: fields, kUnion: branches, kArray, kMap: one
  std::vector<std::optional<std::string>> defaults;  // kRecord: of the fields, as JSON
};

// Owns its types, which may refer to each other in a circle.
class Schema {
 public:
  // Error: one line, why it is no Avro schema.
  static tl::expected<Schema, std::string> Parse(const SchemaText& text);
  [[nodiscard]] const Type& top() const { return *top_; }

 private:
  friend class Parser;
  std::vector<std::unique_ptr<Type>> types_;
  const Type* top_ = nullptr;
};

}  // namespace fencepost::consumer::avro
