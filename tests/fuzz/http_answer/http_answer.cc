// An HTTP answer to a handler's request, as bytes on a socket: libcurl reads them, and what becomes
// of the record is a value or a failure that is fit to print, of its body for a batch those of each
// record. No network: curl is given one end of
// a socket pair whose other end has said all that it will say.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <curl/curl.h>
#include <nlohmann/json.hpp>

#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/http/http_batch.h"
#include "consumer/handlers/http/http_request.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // what a socket's buffer takes

curl_socket_t TakeSocket(void* socket, curlsocktype, curl_sockaddr*) {
  return *static_cast<int*>(socket);
}
int IsConnected(void*, curl_socket_t, curlsocktype) { return CURL_SOCKOPT_ALREADY_CONNECTED; }

AnswerBody Answered(std::string_view answer) {
  static const HttpTarget target =
      *HttpTarget::Make({.url = "http://127.0.0.1:1/", .headers = {}}, "orders");
  std::array<int, 2> sockets{};
  FENCEPOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0,
                  "socketpair");
  const auto written = write(sockets[1], answer.data(), answer.size());
  FENCEPOST_CHECK(written == static_cast<ssize_t>(answer.size()), "write");
  shutdown(sockets[1], SHUT_WR);
  HttpRequest request(&target);
  curl_easy_setopt(request.handle(), CURLOPT_OPENSOCKETFUNCTION, &TakeSocket);
  curl_easy_setopt(request.handle(), CURLOPT_OPENSOCKETDATA, static_cast<void*>(sockets.data()));
  curl_easy_setopt(request.handle(), CURLOPT_SOCKOPTFUNCTION, &IsConnected);
  curl_easy_setopt(request.handle(), CURLOPT_PROXY, "");
  HandlerCall call;
  call.record.value = R"({"order_id": "a"})";
  call.where.topic = "orders";
  call.record_id = "a";
  call.timeout = Millis(5000);
  request.Begin(call, {}, Instant::max());
  const CURLcode code = curl_easy_perform(request.handle());
  FENCEPOST_CHECK(code != CURLE_OPERATION_TIMEDOUT, Shown(answer));
  AnswerBody result = request.Result(code);
  request.End();
  close(sockets[1]);
  return result;
}

void CheckBatch(const std::string& body, HttpBatchForm form) {
  constexpr std::array<std::string_view, 2> kIds = {"a", "b"};
  const auto bodies = ParseHttpBatch({.batch_form = form}, body, kIds);
  if (!bodies) {
    FENCEPOST_CHECK(IsOneLine(bodies.error().text), Shown(body));
    return;
  }
  FENCEPOST_CHECK(bodies->size() == kIds.size(), Shown(body));
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_array()) return;
  const auto has_id = [](const nlohmann::json& element) {
    return element.is_object() && element.contains("id") && element["id"].is_string() &&
           (element.contains("value") || element.contains("error"));
  };
  const bool by_id = std::ranges::any_of(json, has_id);
  for (std::size_t i = 0; i < kIds.size(); ++i) {
    const AnswerBody& one = (*bodies)[i];
    FENCEPOST_CHECK(one || IsOneLine(one.error().text), Shown(body));
    const auto of_it = std::ranges::count_if(json, [&](const nlohmann::json& element) {
      return has_id(element) && element["id"] == kIds[i];
    });
    FENCEPOST_CHECK(!one || !by_id || of_it == 1, Shown(body));
  }
}

}  // namespace

void OneInput(std::string_view input) {
  const std::size_t head = input.find("\r\n\r\n");
  const std::string body(input.substr(head == std::string_view::npos ? 0 : head + 4));
  CheckBatch(body, HttpBatchForm::kArray);
  CheckBatch(body, HttpBatchForm::kNdjson);
  const auto wait = ParseRetryAfter(std::string(Parts(input).Line()), Millis(1'700'000'000'000));
  FENCEPOST_CHECK(!wait || (*wait >= Millis(0) && *wait <= std::chrono::hours(366 * 24)),
                  Shown(input));
  const AnswerBody result = Answered(input.substr(0, kMostBytes));
  if (result) {
    FENCEPOST_CHECK(input.starts_with("HTTP/"), Shown(input));
    return;
  }
  const HandlerFailure& failure = result.error();
  FENCEPOST_CHECK(!failure.error_class.empty() && IsOneLine(failure.error_class), Shown(input));
  FENCEPOST_CHECK(!failure.text.empty() && IsOneLine(failure.text), Shown(failure.text));
  FENCEPOST_CHECK(IsOneLine(failure.shown), Shown(failure.shown));
  const auto after = failure.retry_after;
  FENCEPOST_CHECK(!after || (*after > Millis(0) && *after <= std::chrono::hours(24)), Shown(input));
}

}  // namespace fencepost::fuzz
