#include "metrics/traces/trace_post.h"

#include <zlib.h>

#include <algorithm>

#include <fmt/format.h>

#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::metrics {
namespace {

namespace curl = consumer::curl;
using curl::Set;
using std::chrono::steady_clock;

constexpr std::size_t kMostOfAnswer = std::size_t{64} << 10;

// Empty: there is no memory for it.
std::string Gzip(const std::string& bytes) {
  constexpr int kWindow = 15, kGzipHeader = 16, kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindow + kGzipHeader, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int ended = deflate(&stream, Z_FINISH);
  packed.resize(ended == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string ShownEndpoint(const std::string& endpoint) {
  const curl::Url parts(curl_url());
  if (curl_url_set(parts.get(), CURLUPART_URL, endpoint.c_str(), 0) != CURLUE_OK) return "";
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    curl_url_get(parts.get(), which, &text, 0);
    const curl::Text owned(text);
    return owned ? std::string(owned.get()) : std::string();
  };
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "";
  const std::string port = part(CURLUPART_PORT);
  return consumer::OneLine(
      fmt::format("{}://{}{}{}", scheme, part(CURLUPART_HOST), port.empty() ? "" : ":", port));
}

TracePost::TracePost(const ExportOptions& options, const std::string& user_agent)
    : options_(options), multi_(curl_multi_init()), easy_(curl_easy_init()) {
  FENCEPOST_CHECK(multi_ != nullptr && easy_ != nullptr, "curl");
  CURL* const easy = easy_.get();
  Set(easy, CURLOPT_URL, options_.traces.endpoint.c_str());
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_QUICK_EXIT, 1L);  // a stop does not wait for the name server
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  Set(easy, CURLOPT_USERAGENT, user_agent.c_str());
  if (!options_.certificate.empty()) Set(easy, CURLOPT_CAINFO, options_.certificate.c_str());
  if (!options_.client_certificate.empty()) {
    Set(easy, CURLOPT_SSLCERT, options_.client_certificate.c_str());
  }
  if (!options_.client_key.empty()) Set(easy, CURLOPT_SSLKEY, options_.client_key.c_str());
  headers_.Add("Content-Type: application/x-protobuf");
  headers_.Add("Expect:");
  if (options_.gzip) headers_.Add("Content-Encoding: gzip");
  for (const auto& [name, value] : options_.traces.headers) {
    headers_.Add(value.empty() ? name + ";" : name + ": " + value);
  }
  Set(easy, CURLOPT_HTTPHEADER, headers_.List());
  Set(easy, CURLOPT_POST, 1L);
  Set(easy, CURLOPT_ERRORBUFFER, words_.data());
  Set(easy, CURLOPT_WRITEFUNCTION, &TracePost::OnBody);
  Set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
}

std::size_t TracePost::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  std::string& answer = static_cast<TracePost*>(self)->answer_;
  answer.append(data, std::min(size * count, kMostOfAnswer - answer.size()));
  return size * count;
}

TracePost::Answer TracePost::Send(const std::string& body, const std::function<Moment()>& until) {
  CURL* const easy = easy_.get();
  const std::string packed = options_.gzip ? Gzip(body) : "";
  const std::string& sent = options_.gzip ? packed : body;
  if (sent.empty()) return {.code = CURLE_OUT_OF_MEMORY, .problem = "there is no memory for gzip"};
  answer_.clear();
  words_[0] = '\0';
  const auto size = static_cast<curl_off_t>(sent.size());
  const auto timeout = static_cast<long>(options_.traces.timeout.count());
  for (const CURLcode code : {curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, size),
                              curl_easy_setopt(easy, CURLOPT_POSTFIELDS, sent.data()),
                              curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout)}) {
    if (code != CURLE_OK) return {.code = code, .problem = curl_easy_strerror(code)};
  }
  const CURLMcode added = curl_multi_add_handle(multi_.get(), easy);
  if (added != CURLM_OK) return {.code = CURLE_FAILED_INIT, .problem = curl_multi_strerror(added)};
  Answer answer = Perform(until);
  curl_multi_remove_handle(multi_.get(), easy);
  return answer;
}

TracePost::Answer TracePost::Perform(const std::function<Moment()>& until) {
  for (;;) {
    int running = 0, left = 0;
    CURLMcode code = curl_multi_perform(multi_.get(), &running);
    if (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
      const CURLcode result = message->data.result;
      return Ended(result, words_[0] != '\0' ? words_.data() : curl_easy_strerror(result));
    }
    const auto time = std::chrono::ceil<Millis>(until() - steady_clock::now());
    if (time.count() <= 0) return Ended(CURLE_OPERATION_TIMEDOUT, "the time is up");
    constexpr Millis kLookAgain{1000};
    const int wait = static_cast<int>(std::min(time, kLookAgain).count());
    if (code == CURLM_OK) code = curl_multi_poll(multi_.get(), nullptr, 0, wait, nullptr);
    if (code != CURLM_OK) return Ended(CURLE_FAILED_INIT, curl_multi_strerror(code));
    if (running == 0) return Ended(CURLE_FAILED_INIT, "curl has nothing to do");
  }
}

// Where that fails, a wait for an answer looks again a second later.
void TracePost::Wake() { curl_multi_wakeup(multi_.get()); }

// What there is of an answer counts, also where its end is missing.
TracePost::Answer TracePost::Ended(CURLcode code, std::string_view problem) const {
  Answer answer{.body = answer_, .code = code};
  if (code != CURLE_OK) answer.problem = consumer::OneLine(problem);
  long status = 0;
  curl_off_t seconds = 0;
  const char* type = nullptr;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_TYPE, &type);
  curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &seconds);  // a date too
  constexpr long kFirstOfAnswer = 200;  // before it, there is more to come
  if (status >= kFirstOfAnswer) answer.status = static_cast<int>(status);
  if (type != nullptr) answer.type = type;
  constexpr curl_off_t kMost = 24 * 3600;
  if (seconds > 0) answer.retry_after = std::chrono::seconds(std::min(seconds, kMost));
  return answer;
}

}  // namespace fencepost::metrics
