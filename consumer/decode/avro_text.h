// Avro's logical values as texts. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "consumer/decode/avro_schema.h"

namespace fencepost::consumer::avro {

inline constexpr std::size_t kMaxDecimalBytes = 1024;

// Appends the number that `bytes` (two's complement, the highest first) stand for, divided by ten
// to the `scale`: all its digits, `scale` of them behind the point. False: more than
// kMaxDecimalBytes, or a scale above 4096.
bool AppendDecimal(std::string_view bytes, std::size_t scale, std::string& out);
// What `units` of such a type stand for: "2026-11-22", "13:05:00.250" or
// "2026-11-22T13:05:00.250Z". False: not in the years 0001 to 9999, or not within a day.
bool AppendMoment(std::int64_t units, const MomentForm& form, std::string& out);
// "01234567-89ab-cdef-0123-456789abcdef" of 16 bytes.
void AppendUuid(std::string_view bytes, std::string& out);

}  // namespace fencepost::consumer::avro
