#include "tests/bench/floors/floors.h"

#include <curl/curl.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/bench/shared/stream.h"

namespace fencepost::bench {
namespace {

struct Call {
  CURL* easy = nullptr;
  std::string sent, got;
};

class Loop {
 public:
  explicit Loop(const HttpFloor& floor)
      : floor_(floor),
        multi_(curl_multi_init()),
        calls_(static_cast<std::size_t>(floor.concurrency)) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(floor.concurrency));
    headers_ = curl_slist_append(nullptr, "Content-Type: application/json");
    for (Call& call : calls_) {
      call.easy = curl_easy_init();
      curl_easy_setopt(call.easy, CURLOPT_URL, floor.url.c_str());
      curl_easy_setopt(call.easy, CURLOPT_HTTPHEADER, headers_);
      curl_easy_setopt(call.easy, CURLOPT_WRITEFUNCTION, &OnBody);
      curl_easy_setopt(call.easy, CURLOPT_WRITEDATA, &call);
      curl_easy_setopt(call.easy, CURLOPT_PRIVATE, &call);
      curl_easy_setopt(call.easy, CURLOPT_NOSIGNAL, 1L);
    }
  }
  ~Loop() {
    for (const Call& call : calls_) {
      curl_multi_remove_handle(multi_, call.easy);
      curl_easy_cleanup(call.easy);
    }
    curl_multi_cleanup(multi_);
    curl_slist_free_all(headers_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Run() {
    for (Call& call : calls_) Begin(call);
    while (answered_ < floor_.records) {
      int running = 0;
      curl_multi_perform(multi_, &running);
      int left = 0;
      while (CURLMsg* message = curl_multi_info_read(multi_, &left)) End(*message);
      if (answered_ < floor_.records) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
  }

 private:
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* call) {
    static_cast<Call*>(call)->got.append(data, size * count);
    return size * count;
  }

  void Begin(Call& call) {
    if (begun_ == floor_.records) return;
    call.sent = RecordValue(begun_, begun_ % 1000, floor_.bytes);
    ++begun_;
    call.got.clear();
    curl_easy_setopt(call.easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(call.sent.size()));
    curl_easy_setopt(call.easy, CURLOPT_POSTFIELDS, call.sent.c_str());
    curl_multi_add_handle(multi_, call.easy);
  }

  void End(const CURLMsg& message) {
    Call* call = nullptr;
    long status = 0;
    curl_easy_getinfo(message.easy_handle, CURLINFO_PRIVATE, &call);
    curl_easy_getinfo(message.easy_handle, CURLINFO_RESPONSE_CODE, &status);
    if (message.data.result != CURLE_OK || status != 200 || call->got != call->sent) {
      throw std::runtime_error("http floor: a call failed");
    }
    curl_multi_remove_handle(multi_, call->easy);
    ++answered_;
    Begin(*call);
  }

  const HttpFloor& floor_;
  CURLM* const multi_;
  curl_slist* headers_ = nullptr;
  std::vector<Call> calls_;
  std::int64_t begun_ = 0, answered_ = 0;
};

}  // namespace

void RunHttpFloor(const HttpFloor& floor) { Loop(floor).Run(); }

}  // namespace fencepost::bench
