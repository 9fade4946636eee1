#include "metrics/http/answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "metrics/open_metrics.h"
#include "metrics/page.h"
#include "metrics/status/page_frame.h"

namespace fencepost::metrics {
namespace {

using consumer::ControlAccess;

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kHtml = "text/html; charset=utf-8";

struct Answer {
  int status = 200;
  const char* type = kPlain;
  std::string body;
  std::string policy = "default-src 'none'";  // Content-Security-Policy
};

// Takes as long for a wrong one as for the right one, whatever their lengths.
bool SameSecret(std::string_view given, std::string_view secret) {
  std::array<std::array<unsigned char, SHA256_DIGEST_LENGTH>, 2> sums{};
  SHA256(reinterpret_cast<const unsigned char*>(given.data()), given.size(), sums[0].data());
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), sums[1].data());
  return CRYPTO_memcmp(sums[0].data(), sums[1].data(), sums[0].size()) == 0;
}

std::string InBase64(const std::string& text) {
  std::string coded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  coded.resize(static_cast<std::size_t>(size));
  return coded;
}

// Of Authorization, what stands behind its scheme; empty: it is another one.
std::string_view Credentials(const IncomingRequest& request, std::string_view scheme) {
  const std::string_view text = request.Header("Authorization");
  const bool this_one = text.size() > scheme.size() && text[scheme.size()] == ' ' &&
                        strncasecmp(text.data(), scheme.data(), scheme.size()) == 0;
  return this_one ? text.substr(text.find_first_not_of(' ', scheme.size())) : "";
}

// `host`: HOST:PORT, or HOST alone. `also`: another of its names.
bool IsThisMachine(std::string_view host, std::string_view also) {
  host = host.substr(0, host.ends_with(']') ? host.size() : host.rfind(':'));
  if (!also.empty() && host.size() == also.size() &&
      strncasecmp(host.data(), also.data(), host.size()) == 0) {
    return true;
  }
  const bool ipv4 =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return ipv4 || host == "localhost" || host == "[::1]";
}

Answer State(const ProbeResult& state, std::string_view yes, std::string_view no) {
  if (state.ready) {
    return {.body = fmt::format("{}{}{}\n", yes, state.reason.empty() ? "" : "; ", state.reason)};
  }
  return {.status = 503, .body = fmt::format("{}: {}\n", no, state.reason)};
}

// A request in memory, and what it is answered.
class Bytes final : public httplib::Stream {
 public:
  explicit Bytes(std::string in) : in_(std::move(in)) {}
  std::string Written() { return std::move(out_); }

  using Stream::write;
  bool is_readable() const override { return at_ < in_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = std::min(size, in_.size() - at_);
    std::memcpy(to, in_.data() + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    out_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return 0; }

 private:
  const std::string in_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

// One request and its answer.
class Exchange final : private httplib::Server {
 public:
  Exchange(const Answers& all, const IncomingRequest& request, const Asker& asker)
      : endpoints_(all.endpoints_), all_(all), request_(request), asker_(asker) {
    set_pre_routing_handler([this](const httplib::Request& asked, httplib::Response& response) {
      Write(asked, response);
      return HandlerResponse::Handled;
    });
    set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
  }

  std::string Run() {
    Bytes bytes((request_.refusal() ? "GET / HTTP/1.1" : request_.line()) + "\r\n\r\n");
    Process(&Exchange::process_request, bytes);
    return bytes.Written();
  }

 private:
  using Setup = std::function<void(httplib::Request&)>;

  // The library's versions differ in who says the addresses.
  void Process(bool (Server::*run)(httplib::Stream&, bool, bool&, const Setup&), Bytes& bytes) {
    bool closed = false;
    (this->*run)(bytes, true, closed, nullptr);
  }
  void Process(bool (Server::*run)(httplib::Stream&, const std::string&, int, const std::string&,
                                   int, bool, bool&, const Setup&),
               Bytes& bytes) {
    bool closed = false;
    (this->*run)(bytes, "", 0, "", 0, true, closed, nullptr);
  }

  void Write(const httplib::Request& asked, httplib::Response& response) {
    Answer answer;
    try {
      answer = AnswerTo(asked.method, asked.path);
    } catch (const std::exception& error) {
      answer = {.status = 500, .body = fmt::format("internal error: {}\n", error.what())};
    } catch (...) {
      answer = {.status = 500, .body = "internal error\n"};
    }
    response.status = answer.status;
    response.set_header("Content-Security-Policy", answer.policy);
    if (answer.status == 405) response.set_header("Allow", "GET, HEAD");
    if (answer.status == 401) {
      const consumer::PortAuth& auth = endpoints_.auth;
      if (!auth.bearer.empty()) Challenge(response, "Bearer realm=\"fencepost\"");
      if (!auth.username.empty())
        Challenge(response, R"(Basic realm="fencepost", charset="UTF-8")");
    }
    response.set_content(std::move(answer.body), answer.type);
  }
  static void Challenge(httplib::Response& response, const char* text) {
    response.headers.emplace("WWW-Authenticate", text);
  }

  Answer AnswerTo(const std::string& method, const std::string& path) {
    if (const auto& refusal = request_.refusal()) {
      return {.status = refusal->status, .body = fmt::format("{}\n", refusal->why)};
    }
    // A page in a browser whose name resolves to this machine (DNS rebinding).
    const std::string_view host = request_.Header("Host");
    if (all_.loopback_ && !host.empty() && !IsThisMachine(host, all_.host_)) {
      return Forbidden("this port is bound to this machine, and the request is for another host");
    }
    const bool post = method == "POST" && endpoints_.control.access != ControlAccess::kOff;
    // The token for control is the better one: who has it is not asked for another.
    const bool own_token = post && endpoints_.control.access == ControlAccess::kToken;
    if (!MayBeAskedByAll(method, path)) {
      if (!endpoints_.tls.client_ca.empty() && !asker_.certificate) {
        return Forbidden("the request needs a client's certificate");
      }
      if (!own_token && !HasCredentials()) {
        return {.status = 401, .body = "the request needs the credentials of observe.auth\n"};
      }
    }
    if (post) return Posted(path);
    if (method != "GET" && method != "HEAD") return {.status = 405, .body = "method not allowed\n"};
    return Page(path);
  }

  [[nodiscard]] static Answer Forbidden(std::string_view why) {
    return {.status = 403, .body = fmt::format("forbidden: {}\n", why)};
  }

  [[nodiscard]] bool MayBeAskedByAll(const std::string& method, const std::string& path) const {
    return (method == "GET" || method == "HEAD") &&
           std::ranges::any_of(endpoints_.auth.open,
                               [&](const std::string& name) { return path == "/" + name; });
  }

  [[nodiscard]] bool HasCredentials() {
    const consumer::PortAuth& auth = endpoints_.auth;
    if (auth.bearer.empty() && auth.username.empty()) return true;
    if (!auth.bearer.empty() && Says("Bearer", auth.bearer, "observe.auth.bearer")) return true;
    if (!auth.username.empty() &&
        Says("Basic", auth.password, "observe.auth.basic.password", auth.username)) {
      user_ = auth.username;
      return true;
    }
    NoteWrongCredentials();
    return false;
  }

  // Whether the request has that secret, or user and password. Nobody has one that cannot be read.
  [[nodiscard]] bool Says(const std::string& scheme, const Secret& secret, std::string_view key,
                          const std::string& user = "") const {
    const auto text = secret.Read();
    if (!text) {
      endpoints_.note(locking::Severity::kWarn, "secret_not_read",
                      fmt::format("{}: {}", key, text.error()));
      return false;
    }
    const std::string expected = user.empty() ? *text : InBase64(user + ":" + *text);
    return !expected.empty() && SameSecret(Credentials(request_, scheme), expected);
  }

  // Where there are some.
  void NoteWrongCredentials() const {
    if (!request_.Has("Authorization")) return;
    endpoints_.note(locking::Severity::kWarn, "http_wrong_credentials",
                    fmt::format("wrong credentials for the HTTP port from {}", asker_.address));
  }

  [[nodiscard]] Answer Page(const std::string& path) const {
    if (path == "/metrics" && WantsOpenMetrics(request_.Header("Accept"))) {
      return {.type = kOpenMetricsType, .body = endpoints_.open_metrics()};
    }
    if (path == "/metrics") {
      return {.type = MetricsPage::kContentType, .body = endpoints_.metrics()};
    }
    if (path == "/live") return State(endpoints_.live(), "live", "not live");
    if (path == "/ready") return State(endpoints_.ready(), "ready", "not ready");
    if (path == "/status") return {.type = kJson, .body = endpoints_.status()};
    if (path == "/") {
      const auto& page = MayHaveButtons() ? endpoints_.control.page : endpoints_.page;
      return {.type = kHtml, .body = page(), .policy = PagePolicy()};
    }
    if (path == "/fragment") return {.type = kHtml, .body = endpoints_.fragment()};
    if (path == "/fleet" && endpoints_.fleet) {
      return {.type = kHtml, .body = endpoints_.fleet(), .policy = PagePolicy()};
    }
    if (path == "/fleet-fragment" && endpoints_.fleet_fragment) {
      return {.type = kHtml, .body = endpoints_.fleet_fragment()};
    }
    if (path == "/fleet.json" && endpoints_.fleet_json) {
      return {.type = kJson, .body = endpoints_.fleet_json()};
    }
    return {.status = 404, .body = "not found\n"};
  }

  [[nodiscard]] Answer Posted(const std::string& path) const {
    const std::string_view denied = Denied();
    if (!denied.empty()) return Forbidden(denied);
    const ControlAnswer answer = endpoints_.control.post(path, request_.body());
    if (answer.status == 200 || answer.status == 409) {
      endpoints_.note(
          locking::Severity::kInfo, "http_control",
          fmt::format("POST {} from {}{}{}{}", path, asker_.address, user_.empty() ? "" : ", user ",
                      user_, IsOfBrowser() ? ", by the page" : ""));
    }
    return {.status = answer.status, .body = answer.text + "\n"};
  }

  // Why the request may not control anything; empty: it may.
  [[nodiscard]] std::string_view Denied() const {
    if (endpoints_.control.access == ControlAccess::kToken) {
      const bool good = Says("Bearer", endpoints_.control.token, "observe.control_token");
      if (!good) NoteWrongCredentials();
      return good ? "" : "the request needs the header Authorization: Bearer TOKEN";
    }
    const std::string_view elsewhere = NotThisMachine();
    if (!elsewhere.empty()) return elsewhere;
    return !IsOfBrowser() || IsOfOwnPage()
               ? ""
               : "a page in a browser may not do that, but this worker's own: load it again";
  }

  // Why who asks is not this machine itself; empty: it is.
  [[nodiscard]] std::string_view NotThisMachine() const {
    // A sidecar hands on what comes from elsewhere from another address of 127.0.0.0/8.
    if (asker_.address != "127.0.0.1" && asker_.address != "::1") {
      return "only this machine may do that";
    }
    if (!IsThisMachine(request_.Header("Host"), all_.loopback_ ? all_.host_ : "")) {
      return "the request is for another host: a proxy may not do that";
    }
    for (const char* name : {"Forwarded", "Via", "X-Real-IP", "X-Forwarded-For", "X-Forwarded-Host",
                             "X-Forwarded-Proto"}) {
      if (request_.Has(name)) return "a proxy may not do that";
    }
    return "";
  }

  [[nodiscard]] bool IsOfBrowser() const {
    return request_.Has("Origin") || request_.Has("Referer") || request_.Has("Sec-Fetch-Site");
  }

  // Another site's page is of another Origin, and cannot read the token; a page of this worker
  // before it was started again has another token.
  [[nodiscard]] bool IsOfOwnPage() const {
    const std::string own = fmt::format(
        "http{}://{}", endpoints_.tls.certificate.empty() ? "" : "s", request_.Header("Host"));
    const bool same_site =
        !request_.Has("Sec-Fetch-Site") || request_.Header("Sec-Fetch-Site") == "same-origin";
    const std::string& token = endpoints_.control.page_token;
    return request_.Header("Origin") == own && same_site && !token.empty() &&
           SameSecret(request_.Header("X-Fencepost-Page"), token);
  }

  [[nodiscard]] bool MayHaveButtons() const {
    const ControlAccess access = endpoints_.control.access;
    return endpoints_.control.page && access != ControlAccess::kOff &&
           (access == ControlAccess::kToken || NotThisMachine().empty());
  }

  const Endpoints& endpoints_;
  const Answers& all_;
  const IncomingRequest& request_;
  const Asker& asker_;
  std::string user_;  // of basic credentials that are right
};

Answers::Answers(Endpoints endpoints, bool loopback, std::string host)
    : endpoints_(std::move(endpoints)), loopback_(loopback), host_(std::move(host)) {}

std::string Answers::To(const IncomingRequest& request, const Asker& asker) const {
  return Exchange(*this, request, asker).Run();
}

}  // namespace fencepost::metrics
