#include "consumer/kafka/log_identity/foreign_metadata.h"

#include <bit>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";

// A big-endian number of the first `width` bytes, which are taken away. Java's are signed: nullopt
// below 0.
std::optional<std::int64_t> TakeNumber(std::string_view& bytes, std::size_t width) {
  if (bytes.size() < width) return std::nullopt;
  std::int64_t number = 0;
  for (const char byte : bytes.substr(0, width)) {
    number = number << 8 | static_cast<unsigned char>(byte);
  }
  bytes.remove_prefix(width);
  return (number >> (8 * width - 1)) == 0 ? std::optional(number) : std::nullopt;
}

// How many records they speak of, then a bit for each, set where it is finished, and a spare byte.
std::optional<std::int64_t> FinishedInBits(std::string_view bytes, std::size_t width) {
  const auto count = TakeNumber(bytes, width);
  if (!count || bytes.size() != static_cast<std::size_t>(*count + 7) / 8 + 1) return std::nullopt;
  std::int64_t finished = 0;
  for (const char byte : bytes) finished += std::popcount(static_cast<unsigned char>(byte));
  return finished;
}

// Lengths of runs by turns, of unfinished ones first.
std::optional<std::int64_t> FinishedInRuns(std::string_view bytes, std::size_t width) {
  if (bytes.empty()) return std::nullopt;
  std::int64_t finished = 0;
  for (bool counts = false; !bytes.empty(); counts = !counts) {
    const auto length = TakeNumber(bytes, width);
    if (!length) return std::nullopt;
    if (counts) finished += *length;
  }
  return finished;
}

std::optional<FinishedBehind> Counted(std::optional<std::int64_t> records) {
  return records ? std::optional(FinishedBehind{records}) : std::nullopt;
}

}  // namespace

bool IsForeignMetadata(std::string_view metadata) {
  return !metadata.empty() && !metadata.starts_with("fencepost");
}

std::optional<FinishedBehind> ParseParallelConsumer(std::string_view metadata) {
  const auto decoded = FromBase64(metadata);
  if (!decoded || decoded->empty()) return std::nullopt;
  const std::string_view bytes = std::string_view(*decoded).substr(1);
  switch (decoded->front()) {  // its OffsetEncoding
    case 'l':
      return Counted(FinishedInBits(bytes, 2));
    case 'o':
      return Counted(FinishedInBits(bytes, 4));
    case 'n':
      return Counted(FinishedInRuns(bytes, 2));
    case 'e':
      return Counted(FinishedInRuns(bytes, 4));
    case 'a':
    case 's':
    case 'J':
    case 'p':
      return bytes.starts_with(kZstd) ? std::optional(FinishedBehind()) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace fencepost::consumer
