#include "consumer/aws/aws_outside.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using curl::Set;

constexpr std::size_t kMostBytes = 64 << 10;
constexpr long kConnectMs = 1000;
constexpr long kNearMs = 1200;
constexpr long kAllMs = 2800;  // whoever ends a client waits for it, for 3 s at most

std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size * count > kMostBytes) return 0;  // ends the transfer
  body.append(data, size * count);
  return size * count;
}

AwsAnswer Call(const AwsRequest& request, std::chrono::steady_clock::time_point end) {
  using std::chrono::milliseconds;
  AwsAnswer answer;
  curl::Lines headers;
  for (const std::string& line : request.headers) headers.Add(line);
  headers.Add("Expect:");
  if (request.body.empty()) headers.Add("Content-Type:");
  const auto left =
      std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()).count();
  if (left <= 0) return {.problem = "no time is left"};
  std::array<char, CURL_ERROR_SIZE> words{};
  const curl::Easy easy(curl_easy_init());
  FENCEPOST_CHECK(easy != nullptr, "curl_easy_init");
  Set(easy.get(), CURLOPT_URL, request.url.c_str());
  Set(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy.get(), CURLOPT_NOSIGNAL, 1L);
  Set(easy.get(), CURLOPT_QUICK_EXIT, 1L);  // as for HttpRequest
  Set(easy.get(), CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy.get(), CURLOPT_CONNECTTIMEOUT_MS, request.near ? kConnectMs : kAllMs);
  Set(easy.get(), CURLOPT_TIMEOUT_MS, std::min<long>(left, request.near ? kNearMs : kAllMs));
  if (request.near) Set(easy.get(), CURLOPT_PROXY, "");
  if (request.method != "GET") {
    Set(easy.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    Set(easy.get(), CURLOPT_POSTFIELDS, request.body.c_str());
    Set(easy.get(), CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  Set(easy.get(), CURLOPT_HTTPHEADER, headers.List());
  Set(easy.get(), CURLOPT_ERRORBUFFER, words.data());
  Set(easy.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  Set(easy.get(), CURLOPT_WRITEDATA, static_cast<void*>(&answer.body));
  const CURLcode code = curl_easy_perform(easy.get());
  if (code != CURLE_OK) {
    answer.problem = OneLine(words[0] != '\0' ? words.data() : curl_easy_strerror(code));
    return answer;
  }
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  return answer;
}

tl::expected<std::string, std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return tl::unexpected<std::string>("cannot be opened");
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return tl::unexpected<std::string>("cannot be read");
  if (text.size() > kMostBytes) return tl::unexpected<std::string>("is larger than 64 KiB");
  return text;
}

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

AwsOutside AwsOutside::Process() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAllMs);
  return {.variable = &Variable, .read_file = &ReadFile, .call = [end](const AwsRequest& request) {
            return Call(request, end);
          }};
}

}  // namespace fencepost::consumer
