#include "metrics/http/incoming_request.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::metrics {
namespace {

constexpr std::size_t kHead = 200, kBody = 10;
constexpr const char* kGet = "GET /live HTTP/1.1\r\nHost: a\r\n\r\n";

// "200" where it is whole, "more" where it is not yet, else the status of its refusal.
std::string After(const std::string& text, std::size_t piece = 1'000) {
  IncomingRequest request(kHead, kBody);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    if (!request.Take(std::string_view(text).substr(at, piece))) continue;
    return request.refusal() ? std::to_string(request.refusal()->status) : "200";
  }
  return "more";
}

TEST(IncomingRequest, IsWholeOrRefusedWhateverThePieces) {
  struct Row {
    std::string text, status;
  };
  const std::string post = "POST /x HTTP/1.1\r\nHost: a\r\n";
  const std::string line = "GET / HTTP/1.1\r\n";
  for (const Row& row : std::vector<Row>{
           {kGet, "200"},
           {"GET / HTTP/1.0\r\n\r\n", "200"},
           {std::string(kGet).substr(0, 30), "more"},
           {"GET / HTTP/1.1\n\n", "more"},
           {line + "Host: a\r\nX:\r\nY: \t b \r\n\r\n", "200"},
           {line + "Host: a\r\nX: " + std::string(kHead - 32, 'x') + "\r\n\r\n", "200"},
           {line + "Host: a\r\nX: " + std::string(kHead - 31, 'x') + "\r\n\r\n", "431"},
           {std::string(kHead + 1, 'x'), "431"},
           {post + "Content-Length: 10\r\n\r\n0123456789", "200"},
           {post + "Content-Length: 10\r\n\r\n012345678", "more"},
           {post + "Content-Length: 11\r\n\r\n", "413"},
           {post + "Content-Length: 99999999999999999999\r\n\r\n", "413"},
           {post + "Content-Length:\r\n\r\n", "400"},
           {post + "Content-Length: +1\r\n\r\n", "400"},
           {post + "Content-Length: 0x1\r\n\r\n", "400"},
           {post + "Content-Length: 1, 1\r\n\r\n", "400"},
           {post + "Content-Length: 1\r\ncontent-length: 1\r\n\r\n", "400"},
           {post + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "411"},
           {line + "\r\n", "400"},
           {line + "Host: a\r\nHOST: a\r\n\r\n", "400"},
           {line + "Host: a b\r\n\r\n", "400"},
           {line + "Host: a\r\n X: folded\r\n\r\n", "400"},
           {line + "Host : a\r\n\r\n", "400"},
           {line + "Host: a\r\nX\x01: b\r\n\r\n", "400"},
           {line + "Host: a\r\nX: \x7f\r\n\r\n", "400"},
           {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400"},
           {"GET / / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
           {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
           {"GET\r\n\r\n", "400"},
           {"\r\n\r\n", "400"}}) {
    for (const std::size_t piece : {1UL, 2UL, 3UL, 7UL, 1'000UL}) {
      EXPECT_EQ(After(row.text, piece), row.status) << row.text << " by " << piece;
    }
  }
}

TEST(IncomingRequest, HasItsPartsAsTheyWereSent) {
  IncomingRequest request(kHead, kBody);
  EXPECT_FALSE(request.begun());
  EXPECT_FALSE(request.Take("PO"));
  EXPECT_TRUE(request.begun());
  EXPECT_TRUE(request.Take(
      "ST /%41?b HTTP/1.1\r\nHost: a\r\nX-Y:  %41 b \r\ncontent-LENGTH: 2\r\n\r\nokGET"));
  EXPECT_EQ(request.line(), "POST /%41?b HTTP/1.1");
  EXPECT_EQ(request.Header("x-y"), "%41 b");
  EXPECT_EQ(request.Header("X-Y"), "%41 b");
  EXPECT_FALSE(request.Has("X"));
  EXPECT_EQ(request.Header("X"), "");
  EXPECT_EQ(request.body(), "ok");
  EXPECT_FALSE(request.refusal());
}

TEST(IncomingRequest, TakesNothingAfterItsEnd) {
  IncomingRequest request(kHead, kBody);
  EXPECT_TRUE(request.Refuse(408, "late"));
  EXPECT_TRUE(request.Take(kGet));
  EXPECT_EQ(request.refusal()->status, 408);
  EXPECT_EQ(request.line(), "");
}

}  // namespace
}  // namespace fencepost::metrics
