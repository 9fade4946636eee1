// Answers that are compressed.
#include <zlib.h>

#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::StubServer;

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Answer = StubServer::Answer;

enum Form : std::uint8_t { kGzip = 16 + MAX_WBITS, kZlib = MAX_WBITS, kRaw = 100 };

std::string Deflated(std::string text, Form form) {
  z_stream stream{};
  const int window = form == kRaw ? -MAX_WBITS : form;
  if (deflateInit2(&stream, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class HttpEncoding : public RunnerFixture {
 protected:
  void Always(const std::string& encoding, std::string body, int status = 200) {
    server_ = std::make_unique<StubServer>([=](const StubServer::Request&) {
      return Answer{.status = status, .body = body, .headers = {"Content-Encoding: " + encoding}};
    });
    Start({.kind = HttpHandlerOptions{.url = server_->Url()}});
  }
  std::string Answered(const std::string& encoding, std::string body) {
    Always(encoding, std::move(body));
    return Told("{}");
  }
  std::optional<std::string> Value(const std::string& encoding, std::string body) {
    Always(encoding, std::move(body));
    return ValueOf("{}");
  }

  std::unique_ptr<StubServer> server_;
};

const std::string kText = R"({"order_id":"o-1","amount":7})";

TEST_F(HttpEncoding, OfGzipAndDeflateIsUndone) {
  const std::string gzip = Deflated(kText, kGzip);
  EXPECT_EQ(Value("gzip", gzip), kText);
  EXPECT_EQ(Value("GZip", gzip), kText);
  EXPECT_EQ(Value("x-gzip", gzip), kText);
  EXPECT_EQ(Value("deflate", Deflated(kText, kZlib)), kText);
  EXPECT_EQ(Value("deflate", Deflated(kText, kRaw)), kText);
  EXPECT_EQ(Value("gzip", gzip + gzip), kText + kText) << "two members";
  EXPECT_EQ(Value("gzip", Deflated("", kGzip)), "");
  EXPECT_EQ(Value("gzip", ""), "");
  EXPECT_EQ(Value("identity", kText), kText);
}

TEST_F(HttpEncoding, IsUndoneOfAnAnswerInChunks) {
  const std::string gzip = Deflated(kText, kGzip);
  std::string raw =
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char byte : gzip) raw += std::string("1\r\n") + byte + "\r\n";
  for (const bool whole : {true, false}) {
    server_ = std::make_unique<StubServer>(
        [&](const StubServer::Request&) { return Answer{.raw = whole ? raw + "0\r\n\r\n" : raw}; });
    Start({.kind = HttpHandlerOptions{.url = server_->Url()}});
    if (whole) {
      EXPECT_EQ(ValueOf("{}"), kText);
    } else {
      EXPECT_THAT(Told("{}"), StartsWith("connection, "));
    }
  }
}

TEST_F(HttpEncoding, ThatIsNotUndoneIsAFailureOfTheServiceThatNamesIt) {
  const std::string gzip = Deflated(kText, kGzip);
  const auto failure = [](std::string_view encoding, std::string_view why) {
    return fmt::format("connection, again: HTTP 200: the answer's Content-Encoding is {}, {}",
                       encoding, why);
  };
  EXPECT_EQ(Answered("br", "\x0b\x02\x80{}\x03"),
            failure("br", "and only gzip and deflate are decoded"));
  EXPECT_EQ(Answered("gzip, gzip", Deflated(gzip, kGzip)),
            failure("gzip, gzip", "and only gzip and deflate are decoded"));
  EXPECT_EQ(Answered("gzip\r\nContent-Encoding: br", gzip),
            failure("gzip, br", "and only gzip and deflate are decoded"));
  for (std::size_t size = 1; size < gzip.size(); ++size) {
    ASSERT_EQ(Answered("gzip", gzip.substr(0, size)), failure("gzip", "and it is cut off"));
  }
  EXPECT_EQ(Answered("gzip", kText), failure("gzip", "and its bytes are not"));
  EXPECT_EQ(Answered("deflate", gzip), failure("deflate", "and its bytes are not"));
  EXPECT_EQ(Answered("gzip", gzip + "junk"), failure("gzip", "and its bytes are not"));
  std::string changed = gzip;
  changed[gzip.size() - 8] ^= 1;  // its checksum
  EXPECT_EQ(Answered("gzip", changed), failure("gzip", "and its bytes are not"));
}

TEST_F(HttpEncoding, IsShownWhereItIsTheNameOfOne) {
  Always("br", "?");
  EXPECT_THAT(FailureOf("{}").shown, HasSubstr("Content-Encoding is br, "));
  Always("card-4111", "?");
  EXPECT_THAT(FailureOf("{}").text, HasSubstr("4111"));
  EXPECT_THAT(FailureOf("{}").shown, HasSubstr("Content-Encoding is unknown, "));
}

TEST_F(HttpEncoding, HidesNoStatusOfAFailure) {
  Always("gzip", Deflated("no such order", kGzip), 404);
  EXPECT_EQ(FailureOf("{}").text, "HTTP 404: no such order");
  Always("br", "?", 503);
  EXPECT_EQ(FailureOf("{}").text, "HTTP 503");
  EXPECT_EQ(FailureOf("{}").error_class, "503");
}

TEST_F(HttpEncoding, DoesNotGetAroundTheBound) {
  const std::string most(16 << 20, 'x');
  EXPECT_EQ(Value("gzip", Deflated(most, kGzip)), most);
  EXPECT_EQ(Answered("gzip", Deflated(most + "x", kGzip)),
            "too_large, for good: the decoded answer (HTTP 200) is larger than 16 MiB");
  EXPECT_THAT(Answered("gzip", Deflated(std::string(200 << 20, 'x'), kGzip)),
              StartsWith("too_large, for good: "));
}

}  // namespace
}  // namespace fencepost::consumer
