// Digests of text by OpenSSL. Pure functions; any thread. An OpenSSL that does not provide the
// algorithm (a FIPS module without SHA-1) ends the process: neither EVALSHA nor an id can do
// without.
#pragma once

#include <string>
#include <string_view>

namespace fencepost {

std::string Sha1Hex(std::string_view text);    // 40 digits, lower case: the name of a Redis script
std::string Sha256Hex(std::string_view text);  // 64 digits, lower case
std::string Sha256Base64(std::string_view text);  // as a Content-Security-Policy writes it

}  // namespace fencepost
