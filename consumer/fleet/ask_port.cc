#include "consumer/fleet/ask_port.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/http/curl_holders.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using curl::Checked;
using curl::Set;
using std::chrono::milliseconds;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr long kMostSockets = 256;
constexpr int kTurnMs = 100;

// What bodies may hold.
struct Room {
  std::size_t one = 16 * kMebibyte;
  std::size_t left = 16 * kMebibyte;  // of all that come in at a time
};

// By what a port is asked.
struct Login {
  std::string certificate;  // PEM, the only one that is trusted
  std::string secret;
};

// Of a PEM file, which may be a chain, the server's own certificate: the first. Empty: there is
// none.
std::string FirstCertificate(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::string_view begin = "-----BEGIN CERTIFICATE-----",
                             end = "-----END CERTIFICATE-----";
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end, from);
  return to == std::string::npos ? "" : text.substr(from, to + end.size() - from) + "\n";
}

tl::expected<Login, std::string> LoginOf(const ObserveOptions& port) {
  Login login{.certificate = FirstCertificate(port.tls.certificate), .secret = ""};
  if (!port.tls.certificate.empty() && login.certificate.empty()) {
    return tl::unexpected(port.tls.certificate + " (observe.tls.certificate) has no certificate");
  }
  auto secret = (port.auth.bearer.empty() ? port.auth.password : port.auth.bearer).Read();
  if (!secret) return tl::unexpected("observe.auth: " + secret.error());
  login.secret = std::move(*secret);
  return login;
}

// One GET; stays where it is.
class Question {
 public:
  Question(const ObserveOptions& port, const Login& login, const std::string& url,
           milliseconds limit, Room& room)
      : room_(room), easy_(curl_easy_init()) {
    FENCEPOST_CHECK(easy_ != nullptr, "curl_easy_init");
    Set(easy(), CURLOPT_URL, url.c_str());
    Set(easy(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
    Set(easy(), CURLOPT_NOSIGNAL, 1L);
    Set(easy(), CURLOPT_QUICK_EXIT, 1L);  // the end does not wait for the name server
    Set(easy(), CURLOPT_PROTOCOLS_STR, "http,https");
    Set(easy(), CURLOPT_NOPROXY, "*");
    Set(easy(), CURLOPT_PRIVATE, this);
    Set(easy(), CURLOPT_WRITEFUNCTION, &Question::OnBytes);
    Set(easy(), CURLOPT_WRITEDATA, this);
    Trust(port, login);
    const bool bearer = !port.auth.bearer.empty();
    Set(easy(), CURLOPT_HTTPAUTH, static_cast<long>(bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC));
    SetText(CURLOPT_XOAUTH2_BEARER, bearer ? login.secret : "");
    SetText(CURLOPT_USERNAME, bearer ? "" : port.auth.username);
    SetText(CURLOPT_PASSWORD, bearer ? "" : login.secret);
  }
  ~Question() { room_.left += held_; }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  [[nodiscard]] CURL* easy() const { return easy_.get(); }
  // Once it has ended in `code`.
  PortAnswer Answer(CURLcode code) {
    if (too_long_) return tl::unexpected<std::string>("its answer is too long");
    if (code != CURLE_OK) return tl::unexpected<std::string>(curl_easy_strerror(code));
    curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &reply_.status);
    return std::move(reply_);
  }

 private:
  void SetText(CURLoption option, const std::string& text) {
    if (!text.empty()) Set(easy(), option, text.c_str());
  }
  void Trust(const ObserveOptions& port, const Login& login) {
    if (!login.certificate.empty()) {
      curl_blob blob{const_cast<char*>(login.certificate.data()), login.certificate.size(),
                     CURL_BLOB_COPY};
      Set(easy(), CURLOPT_CAINFO_BLOB, &blob);
      Set(easy(), CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // nor the system's
    }
    Set(easy(), CURLOPT_SSL_VERIFYHOST, 0L);
    if (port.tls.client_ca.empty()) return;
    SetText(CURLOPT_SSLCERT, port.tls.certificate);  // the only one that is known here
    SetText(CURLOPT_SSLKEY, port.tls.key);
  }
  static std::size_t OnBytes(char* data, std::size_t size, std::size_t count, void* to) {
    auto& self = *static_cast<Question*>(to);
    const std::size_t bytes = size * count;
    self.too_long_ = bytes > self.room_.one - self.held_ || bytes > self.room_.left;
    if (self.too_long_) return 0;  // ends it
    self.held_ += bytes;
    self.room_.left -= bytes;
    self.reply_.body.append(data, bytes);
    return bytes;
  }

  Room& room_;
  const curl::Easy easy_;
  PortReply reply_;
  std::size_t held_ = 0;  // bytes
  bool too_long_ = false;
};

}  // namespace

std::string FromHere(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) return "";
  const std::string host = address.substr(0, colon);
  if (host == "[::]") return "[::1]" + address.substr(colon);
  if (host.empty() || host == "0.0.0.0") return "127.0.0.1" + address.substr(colon);
  return address;
}

std::string PortUrl(const ObserveOptions& port, const std::string& at, const std::string& path) {
  return fmt::format("http{}://{}{}", port.tls.certificate.empty() ? "" : "s", at, path);
}

bool HasCredentials(const ObserveOptions& port) {
  return !port.auth.bearer.empty() || !port.auth.username.empty();
}

PortAnswer AskPort(const ObserveOptions& port, const std::string& url, milliseconds limit) {
  const auto login = LoginOf(port);
  if (!login) return tl::unexpected(login.error());
  Room room;
  Question question(port, *login, url, limit, room);
  return question.Answer(curl_easy_perform(question.easy()));
}

void AskPorts(const ObserveOptions& port, const std::vector<std::string>& urls, milliseconds limit,
              const OnPortAnswer& on_answer) {
  const auto login = LoginOf(port);
  if (!login) {
    for (std::size_t i = 0; i < urls.size(); ++i) on_answer(i, tl::unexpected(login.error()));
    return;
  }
  const curl::Multi multi(curl_multi_init());
  FENCEPOST_CHECK(multi != nullptr, "curl_multi_init");
  Checked(curl_multi_setopt(multi.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, kMostSockets));
  Room room{.one = 4 * kMebibyte};
  std::vector<std::unique_ptr<Question>> questions;
  for (const std::string& url : urls) {
    questions.push_back(std::make_unique<Question>(port, *login, url, limit, room));
    Checked(curl_multi_add_handle(multi.get(), questions.back()->easy()));
  }
  for (int running = 1; running > 0;) {
    Checked(curl_multi_perform(multi.get(), &running));
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
      const CURLcode code = message->data.result;  // gone with the handle
      char* ended = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &ended);
      const auto one = std::ranges::find_if(questions, [&](const auto& question) {
        return reinterpret_cast<char*>(question.get()) == ended;
      });
      Checked(curl_multi_remove_handle(multi.get(), (*one)->easy()));
      PortAnswer answer = (*one)->Answer(code);
      one->reset();
      on_answer(static_cast<std::size_t>(one - questions.begin()), std::move(answer));
    }
    if (running > 0) Checked(curl_multi_poll(multi.get(), nullptr, 0, kTurnMs, nullptr));
  }
}

}  // namespace fencepost::consumer
