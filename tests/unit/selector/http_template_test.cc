// What handler.http makes of a record by its url, query and headers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/handlers/http/http_template.h"

namespace fencepost::consumer {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

const TopicPartition kWhere{"orders", 3};
constexpr std::string_view kKey = R"({"shop": "a/b"})";
constexpr std::string_view kValue =
    R"({"id": "7", "dots": "..", "dot": ".", "none": null, "empty": "", "half": "%2e", "up": "../x",
        "slash": "a/b", "nul": "a\u0000b", "line": "a\r\nX-Evil: 1", "tab": "a\tb", "blank": " ",
        "big": 12345678901234567890.10, "list": [1, "ü"], "sign": "a&b=c#d?e", "umlaut": "ü",
        "quoted": "\"{}\"", "@id": "at", "first name": "f", "hex": "2F"})";

class TemplateTest : public ::testing::Test {
 protected:
  TemplateTest() {
    record_.key = kKey;
    record_.value = kValue;
    record_.offset = 42;
    record_.headers = {
        {"tenant", "t 1"}, {"none", std::nullopt}, {"bytes", "\xff\xfe"}, {"a}", "b"}};
  }
  Evaluator& Begun() {
    evaluator_.Begin({.record = &record_,
                      .where = &kWhere,
                      .record_id = "c/o 1",
                      .token = 9'007'199'254'740'993});
    return evaluator_;
  }
  // The url of the record; else why there is none: "file: …" or "record: …".
  std::string Url(std::string_view text, const std::vector<Column>& query = {}) {
    const auto url = HttpUrl::Parse(text, query);
    if (!url) return "file: " + url.error().selector + "|" + url.error().why;
    if (url->constant()) return url->Text();
    const auto made = url->Render(Begun());
    return made ? *made : "record: " + made.error();
  }
  std::string Header(std::string_view text, const std::string& name = "X") {
    const auto header = HttpHeader::Parse(name, text);
    if (!header) return "file: " + header.error().selector + "|" + header.error().why;
    if (header->constant()) return "same: " + header->Text();
    const auto made = header->Render(Begun());
    return !made ? "record: " + made.error() : made->value_or("(left out)");
  }

  Record record_;
  Evaluator evaluator_;
};

Column Parameter(const std::string& name, std::string_view selector) {
  return {.name = name, .selector = Selector::Parse(selector).value()};
}

TEST_F(TemplateTest, MakesOneSegmentOrOneValueOfWhateverTheRecordHas) {
  const std::pair<const char*, std::string> rows[] = {
      {"http://h/o/{json:/id}", "http://h/o/7"},
      {"https://u:p@h:8/o-{json:/id}.json?a=1", "https://u:p@h:8/o-7.json?a=1"},
      {"http://h/{json:/id}/{json:/id}-{header:tenant}/", "http://h/7/7-t%201/"},
      {"http://h/{json:/slash}", "http://h/a%2Fb"},
      {"http://h/{json:/up}", "http://h/..%2Fx"},
      {"http://h/{json:/half}", "http://h/%252e"},
      {"http://h/a{json:/dots}", "http://h/a.."},
      {"http://h/{json:/dots}/../{json:/id}",
       "record: handler.http.url: json:/dots would make a "
       "segment of the path . or .."},
      {"http://h/../{json:/id}", "http://h/../7"},
      {"http://h/{json:/nul}", "http://h/a%00b"},
      {"http://h/{json:/line}", "http://h/a%0D%0AX-Evil%3A%201"},
      {"http://h/{header:bytes}", "http://h/%FF%FE"},
      {"http://h/{json:/umlaut}", "http://h/%C3%BC"},
      {"http://h/{json:/sign}", "http://h/a%26b%3Dc%23d%3Fe"},
      {"http://h/?q={json:/sign}&r=1", "http://h/?q=a%26b%3Dc%23d%3Fe&r=1"},
      {"http://h?q={json:/list}", "http://h?q=%5B1%2C%20%22%C3%BC%22%5D"},
      {"http://h/{json:/big}", "http://h/12345678901234567890.10"},
      {"http://h/{json:/@id}/{json:/first name}", "http://h/at/f"},
      {"http://h/{key:/shop}/{topic}/{partition}/{offset}/{token}/{record_id}",
       "http://h/a%2Fb/orders/3/42/9007199254740993/c%2Fo%201"},
      {"http://h/a{json:/empty}", "http://h/a"},
      {"http://h/?a=1&b={json:/gone?}&c={json:/none?}&d={json:/id?}", "http://h/?a=1&d=7"},
      {"http://h/?b=x{json:/gone?}y", "http://h/"},
      {"http://h/?b={json:/gone?}&c=1#top", "http://h/?c=1"},
      {"http://h/?b={json:/empty}", "http://h/?b="},
      {"http://h/{=x y}", "http://h/x%20y"},
  };
  for (const auto& [text, made] : rows) EXPECT_EQ(Url(text), made) << text;
}

TEST_F(TemplateTest, LeavesAUrlWithoutSelectorsAsItIs) {
  for (const char* url :
       {"http://h", "https://u:p@[::1]:8/a//b/../c;x?y=1&&z#", "http://h?", "", "x"}) {
    const auto parsed = HttpUrl::Parse(url, {});
    ASSERT_TRUE(parsed && parsed->constant()) << url;
    const std::string text = url;
    EXPECT_EQ(parsed->Text(), text.substr(0, text.find('#')));
  }
}

TEST_F(TemplateTest, LetsNoRecordChangeTheDepthOfThePath) {
  const std::string rows[] = {
      "{json:/dots}",           "{json:/dot}",       "{json:/empty}",
      ".{json:/dot}",           "%2E{json:/dot}",    "{json:/dot}%2e",
      "{json:/dots};v=1",       "{json:/empty};v=1", "{json:/empty}{json:/empty}",
      "{json:/dot}{json:/dot}", "{json:/empty}.",    "{json:/empty}%2e."};
  for (const std::string& segment : rows) {
    for (const std::string& rest : {""s, "/"s, "/more"s, "?a=1"s}) {
      EXPECT_THAT(Url("http://h/a/" + segment + rest),
                  HasSubstr("record: handler.http.url: json:/"))
          << segment;
    }
  }
}

TEST_F(TemplateTest, MakesARecordBadThatLacksWhatIsNeeded) {
  const std::pair<const char*, const char*> rows[] = {
      {"http://h/{json:/gone}", "record: handler.http.url: json:/gone finds nothing in the value"},
      {"http://h/{json:/none}", "record: handler.http.url: json:/none is null"},
      {"http://h/?a={json:/none}", "record: handler.http.url: json:/none is null"},
      {"http://h/{header:none}",
       "record: handler.http.url: header:none finds nothing in the record"},
      {"http://h/{timestamp}", "record: handler.http.url: timestamp finds nothing in the record"},
      {"http://h/{key:/gone}", "record: handler.http.url: key:/gone finds nothing in the key"},
  };
  for (const auto& [text, why] : rows) EXPECT_EQ(Url(text), why);
  record_.value.reset();
  EXPECT_EQ(Url("http://h/{json:/id}"),
            "record: handler.http.url: json:/id finds nothing: the record has no value");
  const std::string large(std::size_t{65} << 10, 'x');
  record_.value = large;
  EXPECT_EQ(Url("http://h/{value}"), "record: handler.http.url: value is longer than 64 KiB");
  EXPECT_EQ(Header("{value}"), "record: handler.http.headers.X: value is longer than 64 KiB");
  record_.value = std::string_view(large).substr(0, std::size_t{40} << 10);
  EXPECT_EQ(Url("http://h/?a={value}&b={value}"),
            "record: handler.http.url: the url is longer than 64 KiB");
  EXPECT_EQ(Header("{value}{value}"),
            "record: handler.http.headers.X: the header is longer than 64 KiB");
}

TEST_F(TemplateTest, RefusesSelectorsWhereARecordWouldChooseTooMuch) {
  constexpr const char* kBefore =
      "file: |has a selector before its path: a record must not choose scheme, host, port or user; "
      "for the character { write %7B";
  for (const char* url : {"{json:/url}", "{json:/s}://h/", "http://{json:/h}/",
                          "http://h:{json:/p}/", "http://h{key}", "http://{key}@h/",
                          "http://u:{key}@h/", "http://h.{topic}.x/{key}", "//{key}/"}) {
    EXPECT_EQ(Url(url), kBefore) << url;
  }
  const std::pair<const char*, const char*> rows[] = {
      {"http://h/#{key}",
       "file: key|it is behind the #, and a fragment is never sent: leave it out"},
      {"http://h?a=1#b={key}", "file: key|it is behind the #"},
      {"http://h/{json:/a?}",
       "file: json:/a?|it is optional, and no part of the path can be left "
       "out: leave the ? out"},
      {"http://h/?{key}", "file: key|it is the name of a parameter"},
      {"http://h/?{key}=1", "file: key|it is the name of a parameter"},
      {"http://h/?a=1&b{key}=1", "file: key|it is the name of a parameter"},
      {"http://h/%{json:/hex}", "file: json:/hex|it is behind a % that has no two digits"},
      {"http://h/?a=%2{json:/hex}", "file: json:/hex|it is behind a % that has no two digits"},
  };
  for (const auto& [url, why] : rows) EXPECT_THAT(Url(url), HasSubstr(why));
}

TEST_F(TemplateTest, RefusesWhatIsNoTemplate) {
  const std::pair<const char*, const char*> rows[] = {
      {"{", "file: |has a { that is not closed"},
      {"a{json:/x", "file: |has a { that is not closed"},
      {"{json:/x{key}", "file: |has a { that is not closed"},
      {"a}", "file: |has a } that closes nothing"},
      {"{key}}", "file: |has a } that closes nothing"},
      {"{}", "file: |has braces without a selector"},
      {"{id}", "file: id|not a selector; "},
      {"{ key }", "file:  key |not a selector; "},
      {"{json:x}", "file: json:x|"},
      {"{header:}", "file: header:|header: needs a name"},
      {"{json:/x?default}", "file: json:/x?default|?default is for columns"},
      {"{position}", "file: position|position is for record_id only"},
      {"{worker?}", "file: worker?|a request has no worker"},
      {"{{json:/x}}", "file: json:/x|it has two braces on each side"},
  };
  for (const auto& [text, why] : rows) {
    EXPECT_THAT(Header("a " + std::string(text)), HasSubstr(why));
    EXPECT_THAT(Url("http://h/a" + std::string(text)), HasSubstr(why));
  }
  for (const char* text : {"http://h/{{", "http://h/a}}", "http://h/?a={{x}}"}) {
    EXPECT_EQ(Url(text), "file: |has {{ or }}: in a url the characters are %7B and %7D");
  }
}

TEST_F(TemplateTest, AddsParametersToTheQueryThatTheUrlHas) {
  const std::vector<Column> all = {Parameter("a b", "json:/sign"), Parameter("gone", "json:/gone?"),
                                   Parameter("none", "json:/none?"), Parameter("x", "=1&2")};
  const std::string made = "a%20b=a%26b%3Dc%23d%3Fe&x=1%262";
  EXPECT_EQ(Url("http://h", all), "http://h?" + made);
  EXPECT_EQ(Url("http://h/p?", all), "http://h/p?" + made);
  EXPECT_EQ(Url("http://h/p?q=1#f", all), "http://h/p?q=1&" + made);
  EXPECT_EQ(Url("http://h/{json:/id}?q={json:/gone?}", all), "http://h/7?" + made);
  EXPECT_EQ(Url("http://h/p", {Parameter("gone", "header:gone?")}), "http://h/p");
  EXPECT_EQ(Url("http://h/p?q", {Parameter("x", "=1")}), "http://h/p?q&x=1") << "it is constant";
  EXPECT_THAT(Url("http://h", {Parameter("p", "position")}),
              HasSubstr("file: position|position is"));
  EXPECT_EQ(Url("http://h/p", {Parameter("n", "json:/none")}),
            "record: handler.http.query.n: json:/none is null");
}

TEST_F(TemplateTest, MakesHeadersOfTextsAndOfSelectorsAlone) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "same: "},
      {"a, b", "same: a, b"},
      {"key", "same: key"},
      {"key: 1", "same: key: 1"},
      {"Bearer header:tenant", "same: Bearer header:tenant"},
      {R"({{"a":1}})", R"(same: {"a":1})"},
      {"header:tenant", "t 1"},
      {"header:gone?", "(left out)"},
      {"header:none?", "(left out)"},
      {"json:/id", "7"},
      {"json:/none?", "(left out)"},
      {"key:/shop", "a/b"},
      {"record:/id", "7"},
      {"json:/list", "[1, \"ü\"]"},
      {"{key}", R"({"shop": "a/b"})"},
      {"a {json:/id}-{offset} b", "a 7-42 b"},
      {"a {json:/gone?} b", "(left out)"},
      {"{{{json:/id}}}", "{7}"},
      {"{json:/blank}", ""},
      {"{json:/empty}", ""},
      {"header:bytes", "\xff\xfe"},
      {"{json:/quoted}", "\"{}\""},
      {"header:gone", "record: handler.http.headers.X: header:gone finds nothing in the record"},
      {"header:", "file: header:|header: needs a name, as in header:id"},
      {"json:/a~b", "file: json:/a~b|"},
      {"json:/x?default", "file: json:/x?default|?default is for columns"},
  };
  for (const auto& [text, made] : rows) EXPECT_THAT(Header(text), ::testing::StartsWith(made));
  for (const char* name : {"nul", "line", "tab"}) {
    const std::string why = fmt::format(
        "record: handler.http.headers.X: json:/{} has a control character, such as a line end, "
        "which no header can carry",
        name);
    EXPECT_EQ(Header(fmt::format("json:/{}", name)), why);
    EXPECT_EQ(Header(fmt::format("a {{json:/{}}}", name)), why);
  }
  EXPECT_EQ(Header("{topic}.h", "HOST"),
            "file: |has a selector: a record must not choose the host");
  EXPECT_EQ(Header("h", "Host"), "same: h");
}

}  // namespace
}  // namespace fencepost::consumer
