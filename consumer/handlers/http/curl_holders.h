// Owners for libcurl's handles, and its options.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include <curl/curl.h>

#include "locking/base/check.h"

namespace fencepost::consumer::curl {

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};

using Easy = std::unique_ptr<CURL, Destroyer<&curl_easy_cleanup>>;
using Multi = std::unique_ptr<CURLM, Destroyer<&curl_multi_cleanup>>;  // after its easy handles
using Url = std::unique_ptr<CURLU, Destroyer<&curl_url_cleanup>>;
using Text = std::unique_ptr<char, Destroyer<&curl_free>>;

template <typename Value>
void Set(CURL* easy, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  FENCEPOST_CHECK(code == CURLE_OK, curl_easy_strerror(code));
}

inline void Checked(CURLMcode code) {
  FENCEPOST_CHECK(code == CURLM_OK, curl_multi_strerror(code));
}

// Of the library, at run time: "7.88.1".
inline std::string Version() { return curl_version_info(CURLVERSION_NOW)->version; }

// Header lines in the form that curl takes. Keeps its memory from one request to the next.
class Lines {
 public:
  void Clear() { used_ = 0; }
  std::string& Add(std::string_view begin) {
    if (used_ == lines_.size()) lines_.emplace_back();
    return lines_[used_++].text = begin;
  }
  // Good until the next change.
  curl_slist* List() {
    curl_slist* next = nullptr;
    for (std::size_t i = used_; i-- > 0; next = &lines_[i].item) {
      lines_[i].item = {.data = lines_[i].text.data(), .next = next};
    }
    return next;
  }

 private:
  struct Line {
    std::string text;
    curl_slist item{};
  };
  std::deque<Line> lines_;
  std::size_t used_ = 0;
};

}  // namespace fencepost::consumer::curl
