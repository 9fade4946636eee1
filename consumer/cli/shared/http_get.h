// One GET of a worker's own HTTP port, without a proxy. Blocks for `limit` at most.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <string>

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

// `port`: what the worker's file says of who may ask. With TLS the certificate that the file names
// is the one that is trusted, whatever host it is for. Error: curl's words: no answer.
inline tl::expected<HttpReply, std::string> AskPort(const consumer::ObserveOptions& port,
                                                    const std::string& url,
                                                    std::chrono::milliseconds limit) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  const auto set = [&](CURLoption option, const std::string& text) {
    if (!text.empty()) curl_easy_setopt(curl.get(), option, text.c_str());
  };
  const auto collect = +[](char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
  };
  HttpReply reply;
  set(CURLOPT_URL, url);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  set(CURLOPT_CAINFO, port.tls.certificate);
  curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  if (!port.tls.client_ca.empty()) {  // it is the only certificate that is known here
    set(CURLOPT_SSLCERT, port.tls.certificate);
    set(CURLOPT_SSLKEY, port.tls.key);
  }
  const bool bearer = !port.auth.bearer.empty();
  curl_easy_setopt(curl.get(), CURLOPT_HTTPAUTH,
                   static_cast<long>(bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC));
  set(CURLOPT_XOAUTH2_BEARER, port.auth.bearer);
  set(CURLOPT_USERNAME, bearer ? "" : port.auth.username);
  set(CURLOPT_PASSWORD, bearer ? "" : port.auth.password);
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
