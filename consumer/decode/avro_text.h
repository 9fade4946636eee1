// Avro's logical values as texts. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fencepost::consumer::avro {

inline constexpr std::size_t kMaxDecimalBytes = 1024;
inline constexpr std::size_t kMaxScale = 4096;

// Appends the number that `bytes` (two's complement, the highest first) stand for, divided by ten
// to the `scale`: all its digits, `scale` of them behind the point. False: more than
// kMaxDecimalBytes, or a scale above kMaxScale.
bool AppendDecimal(std::string_view bytes, std::size_t scale, std::string& out);
// "2026-11-22". False: not in the years 0001 to 9999.
bool AppendDate(std::int64_t days, std::string& out);
// "13:05:00.250"; `digits` (3, 6 or 9) of the second. False: not within a day.
bool AppendTime(std::int64_t units, int digits, std::string& out);
// "2026-11-22T13:05:00.250", without a zone. False: not in the years 0001 to 9999.
bool AppendTimestamp(std::int64_t units, int digits, std::string& out);
// "01234567-89ab-cdef-0123-456789abcdef" of 16 bytes.
void AppendUuid(std::string_view bytes, std::string& out);

}  // namespace fencepost::consumer::avro
