// Digests of JSON by what it means: the order of names, white space, escapes and the way a number
// is written do not count; every digit does. 64 bits by XXH3, the same on every little-endian
// machine; no protection against who makes collisions on purpose. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fencepost::consumer {

// Kinds of parts, told apart in a digest. Their numbers are stored: never change one.
enum class JsonKind : std::uint64_t {
  kString = 1,
  kNumber,
  kWord,
  kMember,
  kObject,
  kArray,
  kBytes
};

std::uint64_t DigestText(JsonKind kind, std::string_view text);
std::uint64_t DigestPair(JsonKind kind, std::uint64_t first, std::uint64_t second);

// Of the members of an object, or of the elements of an array.
class DigestOfParts {
 public:
  void AddUnordered(std::uint64_t digest) {
    sum_ += digest;
    ++count_;
  }
  void AddOrdered(std::uint64_t digest) {
    sum_ = DigestPair(JsonKind::kArray, sum_, digest);
    ++count_;
  }
  [[nodiscard]] std::uint64_t Value(JsonKind kind) const { return DigestPair(kind, sum_, count_); }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

// One form for all ways to write a number (by IsJsonNumber): 1.50, 15e-1 and 1.5 are 15e-1,
// and -0.0 is 0. No digit is lost. An exponent beyond 10^12 stays as it is written.
void AppendCanonicalNumber(std::string_view number, std::string& out);
bool IsSameNumber(std::string_view a, std::string_view b);

}  // namespace fencepost::consumer
