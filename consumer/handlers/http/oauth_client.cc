#include "consumer/handlers/http/oauth_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using curl::Set;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = 1 << 20;  // of an answer

// Empty: it does not parse.
std::string Shown(const std::string& url) {
  const curl::Url parts(curl_url());
  if (curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(parts.get(), part, nullptr, 0);
  }
  char* text = nullptr;
  curl_url_get(parts.get(), CURLUPART_URL, &text, 0);
  const curl::Text shown(text);
  return shown ? OneLine(shown.get()) : "";
}

}  // namespace

tl::expected<std::unique_ptr<OauthClient>, Error> OauthClient::Make(
    const HttpHandlerOptions& options, const std::string& user_agent, CURLM* multi) {
  std::string shown = Shown(options.auth.oauth.token_url);
  if (shown.empty()) {
    return tl::unexpected(Error{.code = "bad_config",
                                .what = "the token_url does not parse",
                                .where = "handler.http.auth.oauth2",
                                .hint = "write https://HOST/PATH"});
  }
  return std::make_unique<OauthClient>(options, user_agent, multi, std::move(shown));
}

OauthClient::OauthClient(const HttpHandlerOptions& options, const std::string& user_agent,
                         CURLM* multi, std::string shown)
    : multi_(multi), oauth_(options.auth.oauth), shown_(std::move(shown)), easy_(curl_easy_init()) {
  FENCEPOST_CHECK(easy_ != nullptr, "curl_easy_init");
  CURL* const easy = easy_.get();
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_QUICK_EXIT, 1L);  // as for HttpRequest
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_USERAGENT, user_agent.c_str());
  if (!options.tls_ca.empty()) Set(easy, CURLOPT_CAINFO, options.tls_ca.c_str());
  Set(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
  for (const char* line : {"Accept: application/json", "Expect:"}) headers_.Add(line);
  Set(easy, CURLOPT_HTTPHEADER, headers_.List());
  Set(easy, CURLOPT_ERRORBUFFER, words_.data());
  Set(easy, CURLOPT_WRITEFUNCTION, &OauthClient::OnBody);
  Set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
}

std::size_t OauthClient::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  auto& client = *static_cast<OauthClient*>(self);
  client.too_large_ = client.answer_.size() + size * count > kMostBytes;
  if (client.too_large_) return 0;  // ends the transfer
  client.answer_.append(data, size * count);
  return size * count;
}

const std::string* OauthClient::Token(Millis timeout) {
  const auto now = Clock::now();
  if (token_.Due(now)) {
    answer_.clear();
    too_large_ = false;
    words_[0] = '\0';
    const auto secret = oauth_.client_secret.Read();
    no_secret_ = secret ? "" : "client_secret: " + secret.error();
    // Without one it ends at once: no address is none.
    Set(easy_.get(), CURLOPT_URL, secret ? oauth_.token_url.c_str() : "");
    SayWho(secret.value_or(""));
    Set(easy_.get(), CURLOPT_TIMEOUT_MS,
        static_cast<long>(std::max<Millis>(timeout, Millis(1)).count()));
    curl::Checked(curl_multi_add_handle(multi_, easy_.get()));
    token_.OnAsked();
  }
  return token_.Current(now);
}

void OauthClient::SayWho(std::string_view secret) {
  CURL* const easy = easy_.get();
  const std::string id = OauthToken::FormEncoded(oauth_.client_id);
  const std::string encoded = OauthToken::FormEncoded(secret);
  body_ = OauthToken::BodyOf(oauth_);
  if (in_body_) body_ += fmt::format("&client_id={}&client_secret={}", id, encoded);
  Set(easy, CURLOPT_USERNAME, in_body_ ? nullptr : id.c_str());
  Set(easy, CURLOPT_PASSWORD, in_body_ ? nullptr : encoded.c_str());
  Set(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body_.size()));
  Set(easy, CURLOPT_POSTFIELDS, body_.c_str());
}

std::string OauthClient::Judge(CURLcode code) {
  const auto now = Clock::now();
  if (code != CURLE_OK) {
    token_.OnFailed(now);
    if (!no_secret_.empty()) return no_secret_;
    if (too_large_) return fmt::format("its answer is larger than {} MiB", kMostBytes >> 20);
    return OneLine(words_[0] != '\0' ? words_.data() : curl_easy_strerror(code));
  }
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  std::string problem = token_.OnAnswer(static_cast<int>(status), answer_, now);
  const bool credentials = status == 400 || status == 401;
  known_ = known_ || problem.empty();
  other_way_ = credentials && !known_;
  if (other_way_) in_body_ = !in_body_;
  return credentials ? problem + "; check client_id, client_secret and scope" : problem;
}

std::optional<HandlerFailure> OauthClient::OnEnded(CURLcode code) {
  curl::Checked(curl_multi_remove_handle(multi_, easy_.get()));
  const std::string problem = Judge(code);
  answer_ = {};  // it holds the token
  if (problem.empty()) return std::nullopt;
  const std::string text = fmt::format("the token endpoint {} gave no token: {}", shown_, problem);
  return HandlerFailure{.error_class = "connection", .text = text, .shown = text, .reached = false};
}

tl::expected<FreshToken, std::string> AskForToken(const HttpHandlerOptions& options,
                                                  const std::string& user_agent, Millis limit,
                                                  const std::function<bool()>& stop) {
  constexpr int kBetweenLooks = 100;  // milliseconds
  const curl::Multi multi(curl_multi_init());
  FENCEPOST_CHECK(multi != nullptr, "curl_multi_init");
  auto client = OauthClient::Make(options, user_agent, multi.get());
  if (!client) return tl::unexpected(client.error().what);
  for (bool first = true;; first = false) {
    (void)(*client)->Token(limit);
    for (int running = 1;;) {
      curl::Checked(curl_multi_perform(multi.get(), &running));
      if (running == 0) break;
      if (stop && stop()) return tl::unexpected<std::string>("it is not waited for any more");
      curl::Checked(curl_multi_poll(multi.get(), nullptr, 0, kBetweenLooks, nullptr));
    }
    int left = 0;
    const CURLMsg* ended = curl_multi_info_read(multi.get(), &left);
    FENCEPOST_CHECK(ended != nullptr, "curl_multi_info_read");
    const auto failure = (*client)->OnEnded(ended->data.result);
    if (!failure) break;
    if (!first || !(*client)->may_know_the_other_way()) return tl::unexpected(failure->shown);
  }
  const auto now = Clock::now();
  const OauthToken& token = (*client)->token();
  const std::string* const text = token.Current(now);
  if (text == nullptr) return tl::unexpected<std::string>("the token expired before it was used");
  FreshToken fresh{.text = *text};
  if (token.expires() != OauthToken::Time::max()) {
    fresh.life = std::chrono::floor<std::chrono::seconds>(token.expires() - now);
  }
  return fresh;
}

}  // namespace fencepost::consumer
