// One GET of a worker's own HTTP port, without a proxy. Blocks for `limit` at most.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"

namespace fencepost::cli {

struct HttpReply {
  long status = 0;
  std::string body;
};

// Where a server that listens on HOST:PORT is reached from this machine; empty without a port.
inline std::string ReachedAt(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) return "";
  const std::string host = address.substr(0, colon);
  if (host == "[::]") return "[::1]" + address.substr(colon);
  if (host.empty() || host == "0.0.0.0") return "127.0.0.1" + address.substr(colon);
  return address;
}

// Of a PEM file, which may be a chain, the server's own certificate: the first. Empty: there is
// none.
inline std::string FirstCertificate(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::string_view begin = "-----BEGIN CERTIFICATE-----",
                             end = "-----END CERTIFICATE-----";
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end, from);
  return to == std::string::npos ? "" : text.substr(from, to + end.size() - from) + "\n";
}

// `port`: what the worker's file says of who may ask. With TLS the certificate that the file names
// is the only one that is trusted, whatever host it is for, and not others of its CA: the request
// has credentials. Error: curl's words, or that there is no certificate: no answer.
inline tl::expected<HttpReply, std::string> AskPort(const consumer::ObserveOptions& port,
                                                    const std::string& url,
                                                    std::chrono::milliseconds limit) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  const auto set = [&](CURLoption option, const std::string& text) {
    if (!text.empty()) curl_easy_setopt(curl.get(), option, text.c_str());
  };
  const auto collect = +[](char* data, std::size_t size, std::size_t count, void* to) {
    auto& text = *static_cast<std::string*>(to);
    if (text.size() + size * count > (std::size_t{16} << 20)) return std::size_t{0};  // ends it
    text.append(data, size * count);
    return size * count;
  };
  HttpReply reply;
  set(CURLOPT_URL, url);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  const std::string trusted = FirstCertificate(port.tls.certificate);
  if (!port.tls.certificate.empty()) {
    if (trusted.empty()) {
      return tl::unexpected(port.tls.certificate + " (observe.tls.certificate) has no certificate");
    }
    curl_blob blob{const_cast<char*>(trusted.data()), trusted.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO_BLOB, &blob);
    curl_easy_setopt(curl.get(), CURLOPT_CAPATH, nullptr);  // nor the system's
  }
  curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  if (!port.tls.client_ca.empty()) {  // it is the only certificate that is known here
    set(CURLOPT_SSLCERT, port.tls.certificate);
    set(CURLOPT_SSLKEY, port.tls.key);
  }
  const bool bearer = !port.auth.bearer.empty();
  const auto secret = (bearer ? port.auth.bearer : port.auth.password).Read();
  if (!secret) return tl::unexpected("observe.auth: " + secret.error());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPAUTH,
                   static_cast<long>(bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC));
  set(CURLOPT_XOAUTH2_BEARER, bearer ? *secret : "");
  set(CURLOPT_USERNAME, bearer ? "" : port.auth.username);
  set(CURLOPT_PASSWORD, bearer ? "" : *secret);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return tl::unexpected<std::string>(curl_easy_strerror(code));
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
}

// https://AT/PATH where the port has TLS.
inline std::string PortUrl(const consumer::ObserveOptions& port, const std::string& at,
                           const std::string& path) {
  return (port.tls.certificate.empty() ? "http://" : "https://") + at + path;
}

}  // namespace fencepost::cli
