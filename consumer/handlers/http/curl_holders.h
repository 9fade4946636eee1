// Owners for libcurl's handles, and its options.
#pragma once

#include <memory>
#include <string>

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
using List = std::unique_ptr<curl_slist, Destroyer<&curl_slist_free_all>>;

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

inline void Append(List& list, const char* line) {
  // On failure (no memory) it returns nullptr and leaves the list as it was.
  if (curl_slist* longer = curl_slist_append(list.get(), line)) {
    (void)list.release();
    list.reset(longer);
  }
}

}  // namespace fencepost::consumer::curl
