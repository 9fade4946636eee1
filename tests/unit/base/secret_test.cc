#include "locking/base/secret.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "locking/base/temp_folder.h"

namespace fencepost {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SecretFile : public ::testing::Test {
 protected:
  std::string Write(std::string_view text) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    return path_;
  }
  const TempFolder folder_;
  const std::string path_ = (folder_.path() / "password").string();
};

TEST(SecretText, IsTakenAsItIs) {
  EXPECT_TRUE(Secret().empty());
  EXPECT_EQ(Secret().Read(), "");
  EXPECT_EQ(Secret(" two\nlines ").Read(), " two\nlines ");
  EXPECT_FALSE(Secret("x").empty());
  EXPECT_EQ(Secret("x"), Secret(std::string("x")));
  EXPECT_NE(Secret("x"), Secret::OfFile("x"));
}

TEST_F(SecretFile, IsReadAgainEachTime) {
  const Secret secret = Secret::OfFile(Write("first\n"));
  EXPECT_EQ(secret.Read(), "first");
  Write("second");
  EXPECT_EQ(secret.Read(), "second");
}

TEST_F(SecretFile, IsOneLineWithoutTheMarksOfAnEditor) {
  for (const auto& [text, value] : {
           std::pair("s3cret", "s3cret"),
           std::pair("s3 cret\n", "s3 cret"),
           std::pair("\xef\xbb\xbfs3 cret\r\n\n", "s3 cret"),
           std::pair("${HOME}", "${HOME}"),
       }) {
    EXPECT_EQ(Secret::OfFile(Write(text)).Read(), value);
  }
  using namespace std::string_literals;
  for (const auto& [text, why] : {
           std::pair(""s, "is empty"),
           std::pair("\r\n"s, "is empty"),
           std::pair("hunter\nhunter"s, "holds a line break"),
           std::pair("hunter\rhunter"s, "holds a line break"),
           std::pair("hunter "s, "begins or ends with a blank"),
           std::pair("\thunter"s, "begins or ends with a blank"),
           std::pair("hun\0ter"s, "holds a NUL byte"),
           std::pair(std::string(65537, 'h'), "is larger than 64 KiB"),
       }) {
    const auto read = Secret::OfFile(Write(text)).Read();
    ASSERT_FALSE(read) << why;
    EXPECT_THAT(read.error(), HasSubstr("the file " + path_ + ": " + why));
    EXPECT_THAT(read.error(), Not(HasSubstr("hunter")));
  }
  EXPECT_TRUE(Secret::OfFile(Write(std::string(65536, 'h'))).Read());
}

TEST_F(SecretFile, ThatCannotBeReadSaysWhy) {
  EXPECT_EQ(Secret::OfFile(path_).Read().error(),
            "the file " + path_ + ": No such file or directory");
  const std::string folder = folder_.path().string();
  EXPECT_EQ(Secret::OfFile(folder).Read().error(), "the file " + folder + ": Is a directory");
}

}  // namespace
}  // namespace fencepost
