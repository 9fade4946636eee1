// Services of handlers, and schema registries.
#include <atomic>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "tests/e2e/rotation/http_login.h"

namespace fencepost::testing {

std::string HttpLogin::Header(const std::string& secret) const {
  return scheme_ == Scheme::kBearer ? "Bearer " + secret
                                    : "Basic " + consumer::ToBase64("rotated:" + secret);
}

void HttpLogin::Take(const std::vector<std::string>& secrets) {
  const std::lock_guard lock(mutex_);
  taken_.clear();
  for (const std::string& secret : secrets) taken_.insert(Header(secret));
}

HttpLogin::Answer HttpLogin::Serve(const Request& request) const {
  const auto carried = request.headers.find("authorization");
  {
    const std::lock_guard lock(mutex_);
    const bool taken = carried != request.headers.end() && taken_.contains(carried->second);
    if (!taken) return {.status = 401};
  }
  return welcome_(request);
}

bool HttpLogin::LetsIn(const std::string& secret) const {
  return RunToEnd({.argv = {"curl", "--silent", "--fail", "--noproxy", "*", "--data", "{}",
                            "--header", "Authorization: " + Header(secret), Url("/schemas/ids/1")}})
             .exit_code == 0;
}

namespace {

StubServer::Answer Echo(const StubServer::Request& request) { return {.body = request.body}; }

std::string Handler(const std::string& url, const std::string& auth) {
  return fmt::format("handler:\n  http: {{url: \"{}\", idempotent: true, auth: {{{}}}}}\n", url,
                     auth);
}

class HandlerBearer : public HttpLogin {
 public:
  HandlerBearer() : HttpLogin(Scheme::kBearer, Echo) {}
  void AddTo(PipelineText& text, const std::string& secret) const override {
    text.more += Handler(Url("/charge"), "bearer: " + secret);
  }
};

class HandlerBasic : public HttpLogin {
 public:
  HandlerBasic() : HttpLogin(Scheme::kBasic, Echo) {}
  void AddTo(PipelineText& text, const std::string& secret) const override {
    text.more += Handler(Url("/charge"), "basic: {username: rotated, password: " + secret + "}");
  }
};

// It is the provider of the service's tokens that is logged in at.
class HandlerToken : public HttpLogin {
 public:
  HandlerToken() : HttpLogin(Scheme::kBasic, [this](const Request&) { return Issue(); }) {}
  void AddTo(PipelineText& text, const std::string& secret) const override {
    text.more += Handler(service_.Url("/charge"),
                         fmt::format("oauth2: {{token_url: \"{}\", client_id: rotated, "
                                     "client_secret: {}}}",
                                     Url("/token"), secret));
  }
  // The service refuses all tokens that there are.
  void Disconnect() override { first_good_ = issued_ + 1; }

 private:
  Answer Issue() {
    return {.body = fmt::format(R"({{"access_token":"{}","token_type":"Bearer"}})", ++issued_)};
  }
  Answer Charge(const Request& request) const {
    const auto carried = request.headers.find("authorization");
    const std::string bearer = "Bearer ";
    const bool good = carried != request.headers.end() && carried->second.starts_with(bearer) &&
                      std::stoi(carried->second.substr(bearer.size())) >= first_good_;
    return good ? Echo(request) : Answer{.status = 401};
  }

  std::atomic<int> issued_ = 0;  // tokens: 1, 2, …
  std::atomic<int> first_good_ = 1;
  StubServer service_{[this](const Request& request) { return Charge(request); }};
};

// A zigzag varint, as Avro writes an int or a long.
std::string AvroNumber(int number) {
  std::string bytes;
  for (unsigned rest = static_cast<unsigned>(number) << 1; bytes.empty() || rest != 0; rest >>= 7) {
    bytes += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  }
  return bytes;
}

// Every few orders are of a schema that the worker does not know yet.
class Registry : public HttpLogin {
 public:
  explicit Registry(Scheme scheme)
      : HttpLogin(scheme, [](const Request&) { return Answer{.body = Schema()}; }),
        bearer_(scheme == Scheme::kBearer) {}
  void AddTo(PipelineText& text, const std::string& secret) const override {
    text.start_from +=
        fmt::format("\n  decode: {{value: avro, registry: {{url: \"{}\", {}{}}}}}", Url(""),
                    bearer_ ? "bearer: " : "username: rotated, password: ", secret);
  }
  [[nodiscard]] std::string Value(int order) const override {
    const std::string id = Orders::Id(order);
    const int schema = order / 20 + 1;
    return std::string{0, 0, 0, static_cast<char>(schema >> 8), static_cast<char>(schema)} +
           AvroNumber(static_cast<int>(id.size())) + id + AvroNumber(Orders::Amount(order));
  }

 private:
  static std::string Schema() {
    return R"({"schema":"{\"type\":\"record\",\"name\":\"Order\",\"fields\":[)"
           R"({\"name\":\"order_id\",\"type\":\"string\"},)"
           R"({\"name\":\"amount\",\"type\":\"int\"}]}"})";
  }

  const bool bearer_;
};

}  // namespace

std::unique_ptr<Login> MakeHandlerBearerLogin() { return std::make_unique<HandlerBearer>(); }
std::unique_ptr<Login> MakeHandlerBasicLogin() { return std::make_unique<HandlerBasic>(); }
std::unique_ptr<Login> MakeHandlerTokenLogin() { return std::make_unique<HandlerToken>(); }
std::unique_ptr<Login> MakeRegistryBearerLogin() {
  return std::make_unique<Registry>(HttpLogin::Scheme::kBearer);
}
std::unique_ptr<Login> MakeRegistryBasicLogin() {
  return std::make_unique<Registry>(HttpLogin::Scheme::kBasic);
}

}  // namespace fencepost::testing
