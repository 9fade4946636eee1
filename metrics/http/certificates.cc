#include "metrics/http/certificates.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace fencepost::metrics {
namespace {

constexpr std::chrono::seconds kTryAgain{10};

tl::unexpected<Error> CannotUse(std::string_view key, const std::string& file,
                                const std::string& why) {
  ERR_clear_error();
  return tl::unexpected(Error{"http_certificate",
                              fmt::format("observe.tls.{} cannot be used: {}", key, why), file,
                              "it must be PEM, readable for the worker, and fit the other files"});
}

// OpenSSL's own words for a file that is missing or may not be read say neither.
std::string WhyNot(const std::string& file, const std::error_code& error) {
  errno = 0;
  std::ifstream stream(file);
  if (stream.peek() != std::ifstream::traits_type::eof()) return error.message();
  return errno == 0 ? "it is empty" : std::strerror(errno);
}

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// st_ctim: of a file that is replaced with its times kept, or may be read now.
bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         SameTime(a.st_mtim, b.st_mtim) && SameTime(a.st_ctim, b.st_ctim);
}

}  // namespace

Certificates::Certificates(consumer::PortTls files, bool required, Note note)
    : files_(std::move(files)), required_(required), note_(std::move(note)) {}

tl::expected<std::unique_ptr<Certificates>, Error> Certificates::Read(
    const consumer::PortTls& files, bool required, Note note) {
  std::unique_ptr<Certificates> all(new Certificates(files, required, std::move(note)));
  all->seen_ = all->Look();
  auto context = all->Load();
  if (!context) return tl::unexpected(context.error());
  all->context_ = std::move(*context);
  return all;
}

Certificates::Context Certificates::Current(Clock::time_point now) {
  const State state = Look();
  const bool changed = !std::ranges::equal(state, seen_, SameFile);
  if (!changed && !(refused_ && now - *refused_ >= kTryAgain)) return context_;
  seen_ = state;  // before they are read: what changes meanwhile is seen the next time
  refused_ = now;
  auto context = Load();
  if (context) {
    context_ = std::move(*context);
    refused_.reset();
    note_(locking::Severity::kInfo, "http_certificate",
          "the certificate of the HTTP port was read again");
    return context_;
  }
  if (changed) {
    note_(locking::Severity::kWarn, "http_certificate_refused",
          context.error().Line() + "; the one before stays");
  }
  return context_;
}

Certificates::State Certificates::Look() const {
  State state{};
  const std::array<const std::string*, 3> files = {&files_.certificate, &files_.key,
                                                   &files_.client_ca};
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i]->empty() && stat(files[i]->c_str(), &state[i]) != 0) state[i] = {};
  }
  return state;
}

tl::expected<Certificates::Context, Error> Certificates::Load() const {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // A session that is resumed would keep what an earlier client_ca said of its client; and each
  // connection is one request, so that there is little to save.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_options(native,
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  std::error_code error;
  // Without this OpenSSL would ask for the passphrase at the terminal.
  context->set_password_callback(
      [](std::size_t, asio::ssl::context::password_purpose) { return std::string(); }, error);
  context->use_certificate_chain_file(files_.certificate, error);
  if (error) return CannotUse("certificate", files_.certificate, WhyNot(files_.certificate, error));
  context->use_private_key_file(files_.key, asio::ssl::context::pem, error);
  if (error) return CannotUse("key", files_.key, WhyNot(files_.key, error));
  if (files_.client_ca.empty()) return context;
  context->load_verify_file(files_.client_ca, error);
  if (error) return CannotUse("client_ca", files_.client_ca, WhyNot(files_.client_ca, error));
  SSL_CTX_set_client_CA_list(native, SSL_load_client_CA_file(files_.client_ca.c_str()));
  context->set_verify_mode(
      asio::ssl::verify_peer | (required_ ? asio::ssl::verify_fail_if_no_peer_cert : 0), error);
  return context;
}

}  // namespace fencepost::metrics
