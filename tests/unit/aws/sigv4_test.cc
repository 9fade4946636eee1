// Byte for byte what AWS publishes.
#include "consumer/aws/sigv4.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

// As in a request line: %XX, or bytes as they are.
std::string Decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return bytes;
}

std::vector<std::pair<std::string, std::string>> QueryOf(std::string_view target) {
  std::vector<std::pair<std::string, std::string>> query;
  const std::size_t mark = target.find('?');
  std::string_view rest = mark == target.npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    const std::size_t equals = one.find('=');
    query.emplace_back(Decoded(one.substr(0, equals)), Decoded(one.substr(equals + 1)));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return query;
}

std::string Joined(std::ifstream& file, int lines) {
  std::string text;
  std::string line;
  for (int i = 0; i < lines && std::getline(file, line); ++i) text += (i == 0 ? "" : "\n") + line;
  return text;
}

TEST(SigV4, SignsAsThePublishedVectorsSay) {
  std::ifstream file(testing::SourcePath("tests/unit/aws/sigv4_vectors.txt"));
  int vectors = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("== ")) continue;
    SCOPED_TRACE(line);
    ++vectors;
    const std::string request = Joined(file, 1);
    const std::string token = Joined(file, 1);
    const std::string canonical = Joined(file, 7);
    const std::string to_sign = Joined(file, 4);
    const std::string signature = Joined(file, 1);
    const std::string method = request.substr(0, request.find(' '));
    const std::string target =
        request.substr(method.size() + 1, request.rfind(' ') - method.size() - 1);
    const std::string path = canonical.substr(
        method.size() + 1, canonical.find('\n', method.size() + 1) - method.size() - 1);
    const SignedUrl made =
        SignUrl({.method = method,
                 .host = "example.amazonaws.com",
                 .path = path,
                 .query = QueryOf(target),
                 .payload = canonical.substr(canonical.rfind('\n') + 1)},
                {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token},
                {"us-east-1", "service", sys_days(2015y / 8 / 30) + 12h + 36min, 3600s});
    EXPECT_EQ(made.canonical_request, canonical);
    EXPECT_EQ(made.string_to_sign, to_sign);
    EXPECT_EQ(made.signature, signature);
  }
  EXPECT_EQ(vectors, 15);
}

// docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
TEST(SigV4, MakesThePresignedUrlOfTheDocumentation) {
  const SignedUrl made =
      SignUrl({.host = "examplebucket.s3.amazonaws.com",
               .path = "/test.txt",
               .payload = "UNSIGNED-PAYLOAD"},
              {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
              {"us-east-1", "s3", sys_days(2013y / 5 / 24), 86400s});
  EXPECT_EQ(made.url,
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
            "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
            "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
            "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(SigV4, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(AwsEncoded("aZ09-._~ +/=:*\xc3\xa9"), "aZ09-._~%20%2B%2F%3D%3A%2A%C3%A9");
}

}  // namespace
}  // namespace fencepost::consumer
