// Avro's logical values from texts: the other way round of decode/avro_text.h. Pure functions; any
// thread. Errors are predicates of one line that hold nothing of a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/decode/avro_schema.h"

namespace fencepost::consumer::avro {

// The JSON number times ten to the `scale`, as two's complement, the highest byte first, as few
// bytes as hold it. At most `precision` digits, and none behind the scale.
tl::expected<std::string, std::string> DecimalBytes(std::string_view number, std::size_t precision,
                                                    std::size_t scale);
// The text of a date, time or timestamp as that type's number: "2026-11-22", "13:05:00.25",
// "2026-11-22T13:05:00.25Z" (local ones without an offset). What would be cut off is an error.
tl::expected<std::int64_t, std::string> UnitsOf(std::string_view text, const MomentForm& form);
// Each code point up to U+00FF is a byte, as in a schema's default.
tl::expected<std::string, std::string> CodePointBytes(std::string_view text);
// Two's complement in `size` bytes; not empty.
tl::expected<std::string, std::string> Widened(const std::string& bytes, std::size_t size);
// For people: "an int", "a decimal".
std::string_view NameOf(const Type& type);
// 16 bytes of "01234567-89ab-cdef-0123-456789abcdef".
tl::expected<std::string, std::string> UuidBytes(std::string_view text);

}  // namespace fencepost::consumer::avro
