// Digests of text by OpenSSL, and a hash. Pure functions; any thread. An OpenSSL that does not
// provide the algorithm (a FIPS module without SHA-1) ends the process: neither EVALSHA nor an id
// can do without.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fencepost {

std::string Sha1Hex(std::string_view text);    // 40 digits, lower case: the name of a Redis script
std::string Sha256Hex(std::string_view text);  // 64 digits, lower case
std::string Sha256Base64(std::string_view text);  // as a Content-Security-Policy writes it

// FNV-1a, 64 bits: the same in every process, on every host and in every version, so what is
// stored, or agreed on between processes, may depend on it. Not against attackers.
constexpr std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// The finalizer of SplitMix64: every bit of `x` in every bit of the result.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace fencepost
