#include "locking/base/digest.h"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "locking/base/check.h"

namespace fencepost {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes DigestOf(std::string_view text, const EVP_MD* algorithm, std::string_view missing) {
  Bytes digest(EVP_MAX_MD_SIZE);
  unsigned int size = 0;
  FENCEPOST_CHECK(
      EVP_Digest(text.data(), text.size(), digest.data(), &size, algorithm, nullptr) == 1, missing);
  digest.resize(size);
  return digest;
}

Bytes Sha256(std::string_view text) {
  return DigestOf(text, EVP_sha256(), "OpenSSL provides no SHA-256");
}

std::string Hex(const Bytes& bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

}  // namespace

std::string Sha1Hex(std::string_view text) {
  return Hex(DigestOf(text, EVP_sha1(), "OpenSSL provides no SHA-1, which EVALSHA needs"));
}

std::string Sha256Hex(std::string_view text) { return Hex(Sha256(text)); }

std::string Sha256Base64(std::string_view text) {
  const Bytes digest = Sha256(text);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> base64{};
  const int size = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  return {reinterpret_cast<const char*>(base64.data()), static_cast<std::size_t>(size)};
}

}  // namespace fencepost
