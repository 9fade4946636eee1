#include "locking/redis/session/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <asio/ip/address.hpp>
#include <asio/ssl/error.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace fencepost::locking {
namespace {

constexpr std::string_view kCaKey = "check lock.redis.tls.ca (--tls-ca)";
constexpr std::string_view kCertificateKey = "check lock.redis.tls.certificate (--tls-cert)";
constexpr std::string_view kKeyKey = "check lock.redis.tls.key (--tls-key)";

tl::unexpected<Error> Bad(std::string_view what, const std::string& file, std::string_view why,
                          std::string_view hint) {
  ERR_clear_error();
  return tl::unexpected(Error{"bad_options", fmt::format("{} cannot be used: {}", what, why), file,
                              std::string(hint)});
}

// OpenSSL's own words for a file that is missing or may not be read say neither.
std::optional<std::string> Unreadable(const std::string& file) {
  errno = 0;
  std::ifstream stream(file);
  if (stream.peek() != std::ifstream::traits_type::eof()) return std::nullopt;
  return errno == 0 ? "it is empty" : std::strerror(errno);
}

std::string_view PemTrouble(const std::error_code& error, std::string_view otherwise) {
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  const bool not_pem =
      reason == ERR_R_PEM_LIB || reason == PEM_R_NO_START_LINE || reason == ERR_R_UNSUPPORTED;
  return not_pem ? "it is not PEM" : otherwise;
}

tl::expected<void, Error> UseOwnCertificate(asio::ssl::context& context,
                                            const RedisOptions& redis) {
  const std::string& certificate = redis.tls_certificate;
  const std::string& key = redis.tls_key;
  if (certificate.empty() != key.empty()) {
    return Bad(key.empty() ? "the client's certificate" : "the client's key",
               key.empty() ? certificate : key,
               key.empty() ? "its key is not given" : "its certificate is not given",
               "give both lock.redis.tls.certificate and .key (--tls-cert and --tls-key), or none");
  }
  if (key.empty()) return {};
  const auto bad_certificate = [&](std::string_view why) {
    return Bad("the client's certificate", certificate, why, kCertificateKey);
  };
  const auto bad_key = [&](std::string_view why) {
    return Bad("the client's key", key, why, kKeyKey);
  };
  if (const auto why = Unreadable(certificate)) return bad_certificate(*why);
  if (const auto why = Unreadable(key)) return bad_key(*why);
  std::error_code error;
  context.use_certificate_chain_file(certificate, error);
  if (error) return bad_certificate(PemTrouble(error, error.message()));
  // Without this OpenSSL would ask for the passphrase at the terminal.
  bool encrypted = false;
  context.set_password_callback([&encrypted](std::size_t, asio::ssl::context::password_purpose) {
    encrypted = true;
    return std::string();
  });
  context.use_private_key_file(key, asio::ssl::context::pem, error);
  context.set_password_callback(
      [](std::size_t, asio::ssl::context::password_purpose) { return std::string(); });
  if (!error) return {};
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH) {
    return bad_key("it does not belong to the certificate " + certificate);
  }
  if (encrypted) return bad_key("it is encrypted; a key without passphrase is needed");
  return bad_key(PemTrouble(error, error.message()));
}

std::string WhyNotTrusted(long result, std::string_view name) {
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the node's certificate, or one above it, has expired; renew it at the node";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the node's certificate is not valid yet; check the clocks, or renew it at the node";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "the node's certificate is not for {}; reach the node by a name that it contains, or "
          "set lock.redis.tls.server_name (--tls-server-name) to one",
          name);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return fmt::format("the node's certificate is signed by a CA that is not trusted here; {}",
                         kCaKey);
    default:
      return fmt::format("the node's certificate is refused: {}; see the node's certificate",
                         X509_verify_cert_error_string(result));
  }
}

// What the node itself says in an alert; empty: none of those.
std::string_view WhyNodeRefuses(int reason, bool certificate_shown) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:  // TLS 1.2 has no better word for a missing one
      if (certificate_shown) return {};
      [[fallthrough]];
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the node asks for a client certificate; set lock.redis.tls.certificate and .key "
             "(--tls-cert and --tls-key)";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the node does not trust the CA of our certificate; check "
             "lock.redis.tls.certificate (--tls-cert), or the node's tls-ca-cert-file";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the node says that our certificate has expired; renew the file of "
             "lock.redis.tls.certificate (--tls-cert)";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      return "the node refuses our certificate; check lock.redis.tls.certificate (--tls-cert)";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return "the node offers no TLS 1.2 or later; see its tls-protocols";
    case SSL_R_WRONG_VERSION_NUMBER:
      return "the node does not speak TLS at this port; use its tls-port, or no TLS";
    default:
      return {};
  }
}

}  // namespace

tl::expected<TlsContext, Error> MakeTls(const RedisOptions& redis) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  std::error_code error;
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(asio::ssl::verify_peer, error);
  if (redis.tls_ca.empty()) {
    context->set_default_verify_paths(error);
  } else if (const auto why = Unreadable(redis.tls_ca)) {
    return Bad("the CA file", redis.tls_ca, *why, kCaKey);
  } else {
    context->load_verify_file(redis.tls_ca, error);
  }
  if (error) return Bad("the CA file", redis.tls_ca, PemTrouble(error, error.message()), kCaKey);
  if (auto used = UseOwnCertificate(*context, redis); !used) {
    return tl::unexpected(std::move(used.error()));
  }
  return context;
}

bool ExpectName(SSL* ssl, const std::string& name) {
  std::error_code not_an_ip;
  asio::ip::make_address(name, not_an_ip);
  if (!not_an_ip) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  const std::string dns = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, dns.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, dns.c_str()) == 1;
}

std::string WhyTlsFailed(const std::error_code& error, const SSL* ssl, std::string_view name) {
  if (error.category() != asio::error::get_ssl_category()) return {};
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  const long result = SSL_get_verify_result(ssl);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && result != X509_V_OK) {
    return "TLS: " + WhyNotTrusted(result, name);
  }
  const std::string_view why = WhyNodeRefuses(reason, SSL_get_certificate(ssl) != nullptr);
  return why.empty() ? "TLS: " + error.message() : fmt::format("TLS: {}", why);
}

}  // namespace fencepost::locking
