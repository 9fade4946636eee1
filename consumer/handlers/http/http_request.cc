#include "consumer/handlers/http/http_request.h"

#include <strings.h>
#include <algorithm>

#include <fmt/format.h>

#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/http/http_tls.h"
#include "consumer/json/json_text.h"
#include "consumer/record/text.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using curl::Set;

constexpr std::chrono::hours kMaxRetryAfter{24};
constexpr const char* kUrls = "write http://HOST:PORT/PATH or https://HOST/PATH";
constexpr std::string_view kContentType = "content-type";
constexpr std::string_view kAuthorization = "authorization";
// Ours; the user's of these names are not sent.
constexpr std::array<std::string_view, 3> kReserved = {"idempotency-key", "fencing-token",
                                                       "x-fencepost-source"};

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// application/json; charset=utf-8, application/vnd.shop+json
bool IsJsonType(std::string_view type) {
  type = Trimmed(type.substr(0, type.find(';')));
  return type.size() >= 5 && (SameName(type.substr(type.size() - 5), "/json") ||
                              SameName(type.substr(type.size() - 5), "+json"));
}

// A name of a method or a header: RFC 9110's token.
bool IsToken(std::string_view text) {
  constexpr std::string_view kSpecial = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSpecial.find(c) != std::string_view::npos;
  });
}

Error Bad(std::string what, std::string hint) {
  return {.code = "bad_config",
          .what = std::move(what),
          .where = "handler.http",
          .hint = std::move(hint)};
}

// That is how curl wants a header without a value.
std::string HeaderLine(const std::string& name, const std::string& value) {
  return value.empty() ? name + ";" : name + ": " + value;
}

// The record's header of that name, if a request can carry it. The last one counts.
std::optional<std::string_view> PlainHeader(const Record& record, std::string_view name) {
  std::optional<std::string_view> found;
  for (const HeaderView& header : record.headers) {
    if (SameName(header.name, name)) found = header.value;
  }
  if (found && (found->empty() || !IsPrintable(*found))) found.reset();
  return found;
}

}  // namespace

tl::expected<HttpTarget, Error> HttpTarget::Make(const HttpHandlerOptions& options,
                                                 const std::string& pipeline) {
  HttpTarget target{.options = options, .user_agent = "fencepost (" + pipeline + ")"};
  auto address = HttpUrl::Parse(options.url, options.query);
  if (!address) return tl::unexpected(Bad("the url " + address.error().Text(), ""));
  target.url = std::move(*address);
  const curl::Url url(curl_url());
  const std::string text = target.url.Text();
  if (const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0)) {
    return tl::unexpected(
        Bad(fmt::format("the url does not parse ({})", curl_url_strerror(code)), kUrls));
  }
  char* scheme_text = nullptr;
  curl_url_get(url.get(), CURLUPART_SCHEME, &scheme_text, 0);
  const curl::Text scheme(scheme_text);
  const std::string_view name = scheme ? scheme.get() : "";
  if (name != "http" && name != "https") {
    return tl::unexpected(Bad(fmt::format("the url's scheme is {}", OneLine(name)), kUrls));
  }
  target.https = name == "https";
  if (!IsToken(options.method)) {
    return tl::unexpected(Bad("the method is not one", "write GET, POST, PUT, PATCH or DELETE"));
  }
  if (auto files = CheckTlsFiles(options); !files) return tl::unexpected(files.error());
  const HttpAuthOptions& auth = options.auth;
  const bool known = auth.bearer.path().empty() && auth.password.path().empty();
  if ((known && !SecretOf(auth)) || auth.username.find(':') != std::string::npos) {
    return tl::unexpected(Bad("auth holds what no request can have",
                              "bearer is a token of printable characters, username has no colon"));
  }
  for (const auto& [header, value] : options.headers) {
    if (auto error = target.AddHeader(header, value)) return tl::unexpected(std::move(*error));
  }
  return target;
}

std::optional<Error> HttpTarget::AddHeader(const std::string& name, const std::string& text) {
  if (!IsToken(name) || !IsPrintable(text)) {
    return Bad(fmt::format("the header {} is not one", OneLine(name)),
               "names are letters, digits and -, values are printable");
  }
  auto header = HttpHeader::Parse(name, text);
  if (!header) return Bad(fmt::format("the header {} {}", name, header.error().Text()), "");
  const auto same = [&name](std::string_view other) { return SameName(name, other); };
  const bool ours = std::any_of(kReserved.begin(), kReserved.end(), same);
  if (ours && !Planted("header_hides_the_token")) return std::nullopt;
  if (same(kAuthorization) && options.auth.any()) {
    return Bad("auth and the header Authorization both say who calls", "leave one of the two out");
  }
  own_trace = own_trace || same(kTraceparent);
  if (!header->constant()) {
    templates.push_back(std::move(*header));
    return std::nullopt;
  }
  const std::string value = header->Text();
  if (same(kContentType)) json = IsJsonType(value);
  headers.push_back(HeaderLine(name, value));
  return std::nullopt;
}

// Of the token or the password, whichever there is.
tl::expected<std::string, std::string> SecretOf(const HttpAuthOptions& auth) {
  if (auth.bearer.empty()) {
    return auth.password.Read().map_error(
        [](const std::string& why) { return "password: " + why; });
  }
  auto token = auth.bearer.Read();
  if (!token) return tl::unexpected("bearer: " + token.error());
  if (token->empty() || !IsPrintable(*token)) {
    return tl::unexpected<std::string>("bearer is no token of printable characters");
  }
  return token;
}

tl::expected<RequestParts, HandlerFailure> HttpTarget::PartsOf(const HandlerCall& call,
                                                               std::optional<std::string> body,
                                                               Evaluator& evaluator) const {
  RequestParts parts{.url = {}, .headers = {}, .json = json, .body = std::move(body)};
  if (!url.constant() || !templates.empty()) {
    evaluator.Begin({.record = &call.record,
                     .where = &call.where,
                     .record_id = call.record_id,
                     .token = call.token});
  }
  if (!url.constant()) {
    auto text = url.Render(evaluator);
    if (!text) return tl::unexpected(RefusedRecord(text.error()));
    parts.url = std::move(*text);
  }
  for (const HttpHeader& header : templates) {
    const auto value = header.Render(evaluator);
    if (!value) return tl::unexpected(RefusedRecord(value.error()));
    if (!*value) continue;
    if (SameName(header.name(), kContentType)) parts.json = IsJsonType(**value);
    parts.headers.push_back(HeaderLine(header.name(), **value));
  }
  const bool has_to_be = parts.body && parts.json.value_or(false);
  const std::string_view why = has_to_be ? JsonProblem(*parts.body) : "";
  if (why.empty()) return parts;
  return tl::unexpected(NotJson(why, "handler.http.headers has a Content-Type of JSON"));
}

std::string HttpTarget::SharedOf(const HandlerCall& call, Evaluator& evaluator) const {
  if (url.constant() && templates.empty()) return "";
  const auto parts = PartsOf(call, std::nullopt, evaluator);
  return parts ? fmt::format("{}\n{}", parts->url, fmt::join(parts->headers, "\n")) : "";
}

HttpRequest::HttpRequest(const HttpTarget* target) : target_(target), easy_(curl_easy_init()) {
  FENCEPOST_CHECK(easy_ != nullptr, "curl_easy_init");
  SetCommonOptions();
}

int HttpRequest::BeforeSending(void* self, char* /*there*/, char* /*here*/, int /*port_there*/,
                               int /*port_here*/) {
  auto& request = *static_cast<HttpRequest*>(self);
  if (request.begun_ && request.WentOut() && !Planted("attempt_is_sent_again")) {
    return CURL_PREREQFUNC_ABORT;
  }
  request.too_late_ = LeaseHasEnded(request.valid_until_);
  if (request.too_late_) return CURL_PREREQFUNC_ABORT;
  request.begun_ = true;
  return CURL_PREREQFUNC_OK;
}

// After the call of BeforeSending: before it, these may be bytes for a proxy.
bool HttpRequest::WentOut() const {
  long bytes = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

std::size_t HttpRequest::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  auto& request = *static_cast<HttpRequest*>(self);
  if (request.body_.size() + size * count > kMaxAnswerBytes) {
    request.too_large_ = true;
    return 0;  // ends the transfer
  }
  request.body_.append(data, size * count);
  return size * count;
}

void HttpRequest::Begin(const HandlerCall& call, RequestParts parts, Instant valid_until) {
  payload_ = std::move(parts.body);
  valid_until_ = valid_until;
  Reset();
  Set(easy_.get(), CURLOPT_TIMEOUT_MS,
      static_cast<long>(std::max<Millis>(call.timeout, Millis(1)).count()));
  if (!parts.url.empty()) Set(easy_.get(), CURLOPT_URL, parts.url.c_str());
  const HttpAuthOptions& auth = target_->options.auth;
  if (!auth.username.empty()) Set(easy_.get(), CURLOPT_PASSWORD, parts.secret.c_str());
  if (!auth.bearer.empty()) Authorize(parts.secret);
  SetBody();
  SetHeaders(call, parts);
}

void HttpRequest::Reset() {
  body_.clear();
  begun_ = false;
  too_late_ = false;
  too_large_ = false;
  words_[0] = '\0';
}

void HttpRequest::Authorize(const std::string& token) {
  Set(easy_.get(), CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
  Set(easy_.get(), CURLOPT_XOAUTH2_BEARER, token.c_str());
}

bool HttpRequest::IsUnauthorized(CURLcode code) const {
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return code == CURLE_OK && status == 401;
}

void HttpRequest::SetCommonOptions() {
  CURL* const easy = easy_.get();
  Set(easy, CURLOPT_URL, target_->url.Text().c_str());
  Set(easy, CURLOPT_PATH_AS_IS, 1L);
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  // Otherwise the end of a request waits for the name server, and all other requests with it.
  Set(easy, CURLOPT_QUICK_EXIT, 1L);
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_USERAGENT, target_->user_agent.c_str());
  Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // The first of many requests finds out whether they can share one connection.
  Set(easy, CURLOPT_PIPEWAIT, target_->https ? 1L : 0L);
  if (!target_->options.tls_ca.empty()) {
    Set(easy, CURLOPT_CAINFO, target_->options.tls_ca.c_str());
  }
  if (!target_->options.tls_key.empty()) {
    Set(easy, CURLOPT_SSLCERT, target_->options.tls_certificate.c_str());
    Set(easy, CURLOPT_SSLKEY, target_->options.tls_key.c_str());
  }
  if (const HttpAuthOptions& auth = target_->options.auth; !auth.username.empty()) {
    Set(easy, CURLOPT_USERNAME, auth.username.c_str());
  }
  const std::string& method = target_->options.method;
  if (method == "HEAD") {
    Set(easy, CURLOPT_NOBODY, 1L);
  } else if (method != "GET") {
    Set(easy, CURLOPT_CUSTOMREQUEST, method.c_str());
  }
  Set(easy, CURLOPT_ERRORBUFFER, words_.data());
  Set(easy, CURLOPT_PREREQFUNCTION, &HttpRequest::BeforeSending);
  Set(easy, CURLOPT_PREREQDATA, static_cast<void*>(this));
  Set(easy, CURLOPT_WRITEFUNCTION, &HttpRequest::OnBody);
  Set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  Set(easy, CURLOPT_PRIVATE, static_cast<void*>(this));
}

void HttpRequest::SetBody() {
  CURL* const easy = easy_.get();
  const std::string& method = target_->options.method;
  if (method == "GET" || method == "HEAD") return;
  if (payload_ || method == "POST" || method == "PUT" || method == "PATCH") {
    Set(easy, CURLOPT_POST, 1L);
    Set(easy, CURLOPT_POSTFIELDSIZE_LARGE,
        static_cast<curl_off_t>(payload_ ? payload_->size() : 0));
    Set(easy, CURLOPT_POSTFIELDS, payload_ ? payload_->c_str() : "");
  } else {
    Set(easy, CURLOPT_HTTPGET, 1L);
  }
}

void HttpRequest::SetHeaders(const HandlerCall& call, const RequestParts& parts) {
  headers_.Clear();
  for (const std::string& line : target_->headers) headers_.Add(line);
  for (const std::string& line : parts.headers) headers_.Add(line);
  if (!target_->batches()) AddCallHeaders(call);
  if (!parts.json) headers_.Add(ContentType());
  headers_.Add("Expect:");  // no round trip more for large bodies
  Set(easy_.get(), CURLOPT_HTTPHEADER, headers_.List());
}

void HttpRequest::AddCallHeaders(const HandlerCall& call) {
  AppendEncoded(call.record_id, headers_.Add("Idempotency-Key: "));
  headers_.Add("Fencing-Token: ") += std::to_string(call.token);
  headers_.Add("X-Fencepost-Source: ") += SourceText(call.where, call.record.offset);
  if (target_->own_trace) return;
  if (call.trace.there()) {
    headers_.Add("traceparent: ") += TraceparentText(call.trace);
  } else if (const auto trace = PlainHeader(call.record, kTraceparent)) {
    headers_.Add("traceparent: ") += *trace;
  }
}

const char* HttpRequest::ContentType() const {
  if (!payload_) return "Content-Type:";  // curl's own is of no use
  const bool lines = target_->options.batch_form == HttpBatchForm::kNdjson;
  if (target_->batches() && lines) return "Content-Type: application/x-ndjson";
  const bool json = target_->batches() || JsonProblem(*payload_).empty();
  return json ? "Content-Type: application/json" : "Content-Type: application/octet-stream";
}

std::string HttpRequest::CurlsWords(CURLcode code) const {
  return OneLine(words_[0] != '\0' ? words_.data() : curl_easy_strerror(code));
}

std::string HttpRequest::Encoding() const {
  constexpr int kLastRequest = -1;
  std::string encoding;
  curl_header* header = nullptr;
  const auto find = [&](std::size_t index) {
    return curl_easy_header(easy_.get(), "Content-Encoding", index, CURLH_HEADER, kLastRequest,
                            &header) == CURLHE_OK;
  };
  for (std::size_t i = 0; find(i); ++i) encoding.append(i == 0 ? "" : ", ").append(header->value);
  return encoding;
}

std::optional<Millis> HttpRequest::RetryAfter() const {
  curl_off_t seconds = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &seconds);  // a date too
  if (seconds <= 0) return std::nullopt;
  const std::chrono::seconds most = kMaxRetryAfter;
  return std::chrono::seconds(std::min<curl_off_t>(seconds, most.count()));
}

AnswerBody HttpRequest::Result(CURLcode code) {
  const bool torn = code == CURLE_PARTIAL_FILE && Planted("torn_answer_counts");
  if (code != CURLE_OK && !too_large_ && !torn) {
    const bool late = code == CURLE_OPERATION_TIMEDOUT;
    const bool again = code == CURLE_ABORTED_BY_CALLBACK;  // BeforeSending
    const std::string words = too_late_ ? "there was no connection before the lease had ended"
                              : again   ? "the connection ended without an answer"
                                        : CurlsWords(code);
    return tl::unexpected(HandlerFailure{.error_class = late ? "timeout" : "connection",
                                         .text = words,
                                         .shown = words,
                                         .reached = begun_ && WentOut()});
  }
  long number = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &number);
  if (too_large_ && ReadsAnswer(target_->options) &&
      MatchClass(target_->options.success, std::to_string(number)) != ClassMatch::kNone) {
    return tl::unexpected(TooLarge(fmt::format("the answer (HTTP {})", number)).error());
  }
  return BodyOf(target_->options, {.status = static_cast<int>(number),
                                   .encoding = Encoding(),
                                   .body = std::move(body_),
                                   .retry_after = RetryAfter()});
}

void HttpRequest::End() {
  payload_.reset();
  body_ = {};
}

}  // namespace fencepost::consumer
