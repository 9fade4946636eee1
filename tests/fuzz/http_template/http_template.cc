// A url and a header with selectors, and a record of any bytes: what comes of it has the scheme,
// host, port, user and depth of path that the text has, and nothing that ends a line. The first
// line is the url, the second the header, the third the record's key, the rest its value.
#include <algorithm>

#include <curl/curl.h>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/handlers/http/http_template.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

std::string PartOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  curl_url_get(url, part, &text, 0);
  const curl::Text kept(text);
  return kept ? kept.get() : "";
}

// The url as curl sends it, part by part; the path as the number of its segments.
std::vector<std::string> Fixed(const std::string& text) {
  const curl::Url url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK)
    return {};
  const std::string path = PartOf(url.get(), CURLUPART_PATH);
  return {PartOf(url.get(), CURLUPART_SCHEME),
          PartOf(url.get(), CURLUPART_USER),
          PartOf(url.get(), CURLUPART_PASSWORD),
          PartOf(url.get(), CURLUPART_HOST),
          PartOf(url.get(), CURLUPART_PORT),
          PartOf(url.get(), CURLUPART_FRAGMENT),
          std::to_string(std::ranges::count(path, '/'))};
}

// What RFC 3986 (5.2.4) leaves of the path: its last segments show whether one went up.
std::string Normal(const std::string& text) {
  const curl::Url url(curl_url());
  curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  return std::to_string(std::ranges::count(PartOf(url.get(), CURLUPART_PATH), '/'));
}

void CheckUrl(std::string_view text, Evaluator& evaluator) {
  const auto url = HttpUrl::Parse(text, {});
  if (!url) {
    FENCEPOST_CHECK(IsOneLine(url.error().why), Shown(url.error().why));
    return;
  }
  const std::vector<std::string> fixed = Fixed(url->Text());
  if (fixed.empty() || url->constant()) return;  // no url at all
  const auto made = url->Render(evaluator);
  if (!made) {
    FENCEPOST_CHECK(IsOneLine(made.error()), Shown(made.error()));
    return;
  }
  FENCEPOST_CHECK(Fixed(*made) == fixed, Shown(*made));
  FENCEPOST_CHECK(Normal(*made) == Normal(url->Text()), Shown(*made));
}

void CheckHeader(std::string_view text, Evaluator& evaluator) {
  const auto header = HttpHeader::Parse("X", text);
  if (!header) {
    FENCEPOST_CHECK(IsOneLine(header.error().why), Shown(header.error().why));
    return;
  }
  if (header->constant()) return;
  const auto made = header->Render(evaluator);
  if (!made) FENCEPOST_CHECK(IsOneLine(made.error()), Shown(made.error()));
  if (made && *made) FENCEPOST_CHECK(IsPrintable(**made), Shown(**made));
}

}  // namespace

void OneInput(std::string_view input) {
  Parts parts(input);
  const std::string_view url = parts.Line();
  const std::string_view header = parts.Line();
  if (!IsOneLine(url) || !IsOneLine(header)) return;  // a pipeline file has no others
  Record record;
  record.key = parts.Line();
  record.headers = {{"h", record.key}, {"none", std::nullopt}};
  if (parts.rest() != "null") record.value = parts.rest();
  const TopicPartition where{"orders", 3};
  Evaluator evaluator;
  evaluator.Begin({.record = &record, .where = &where, .record_id = "id"});
  CheckUrl(url, evaluator);
  CheckHeader(header, evaluator);
}

}  // namespace fencepost::fuzz
