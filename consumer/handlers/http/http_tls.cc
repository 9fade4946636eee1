#include "consumer/handlers/http/http_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

tl::unexpected<Error> BadFile(std::string_view key, const std::string& file, std::string_view why) {
  ERR_clear_error();
  return tl::unexpected(Error{.code = "bad_config",
                              .what = fmt::format("{} cannot be used: {}", OneLine(file), why),
                              .where = fmt::format("handler.http.tls.{}", key),
                              .hint = ""});
}

// OpenSSL's own words for a file that is missing or may not be read say neither.
std::string WhyUnreadable(const std::string& file) {
  errno = 0;
  std::ifstream stream(file);
  if (stream.peek() != std::ifstream::traits_type::eof()) return "";
  return errno == 0 ? "it is empty" : std::strerror(errno);
}

std::string_view WhyRefused() {
  const int reason = ERR_GET_REASON(ERR_get_error());
  switch (reason) {
    case ERR_R_PEM_LIB:
    case PEM_R_NO_START_LINE:
    case ERR_R_UNSUPPORTED:
    case X509_R_NO_CERTIFICATE_OR_CRL_FOUND:
      return "it is not PEM";
    case X509_R_KEY_VALUES_MISMATCH:
    case X509_R_KEY_TYPE_MISMATCH:
      return "it does not belong to tls.certificate";
    default:
      return "OpenSSL cannot read it";
  }
}

int RefusePassphrase(char*, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return 0;
}

}  // namespace

tl::expected<void, Error> CheckTlsFiles(const HttpHandlerOptions& options) {
  const std::string& ca = options.tls_ca;
  const std::string& certificate = options.tls_certificate;
  const std::string& key = options.tls_key;
  if (certificate.empty() != key.empty()) {
    const std::string_view given = key.empty() ? "certificate" : "key";
    return BadFile(given, key.empty() ? certificate : key,
                   "certificate and key are given together");
  }
  for (const auto& [name, file] :
       {std::pair("ca", &ca), std::pair("certificate", &certificate), std::pair("key", &key)}) {
    const std::string why = file->empty() ? "" : WhyUnreadable(*file);
    if (!why.empty()) return BadFile(name, *file, why);
  }
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  FENCEPOST_CHECK(context != nullptr, "SSL_CTX_new");
  ERR_clear_error();
  if (!ca.empty() && SSL_CTX_load_verify_file(context.get(), ca.c_str()) != 1) {
    return BadFile("ca", ca, WhyRefused());
  }
  if (key.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) {
    return BadFile("certificate", certificate, WhyRefused());
  }
  bool encrypted = false;  // otherwise OpenSSL would ask for the passphrase at the terminal
  SSL_CTX_set_default_passwd_cb(context.get(), &RefusePassphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context.get(), &encrypted);
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) == 1) return {};
  const std::string_view why = WhyRefused();
  return BadFile("key", key,
                 encrypted ? "it is encrypted; a key without passphrase is needed" : why);
}

}  // namespace fencepost::consumer
