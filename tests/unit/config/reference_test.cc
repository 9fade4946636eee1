// REFERENCE.md says what the schema says, and each row of the schema is complete.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "config/schema/schema.h"
#include "tests/support/paths.h"
#include "tests/unit/config/reference_markdown.h"

namespace fencepost::config {
namespace {

TEST(Reference, IsWhatTheSchemaSays) {
  const std::string path = testing::SourcePath("config/REFERENCE.md");
  if (std::getenv("FENCEPOST_WRITE_REFERENCE") != nullptr) {
    std::ofstream(path) << ReferenceMarkdown();
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_TRUE(text.str() == ReferenceMarkdown())
      << "run this test with FENCEPOST_WRITE_REFERENCE=1 to write " << path << " again";
}

TEST(Schema, ExplainsEachKeyInFortyWordsAtMostAndShowsThirtyFirst) {
  int basic = 0;
  for (const Key& key : Schema()) {
    std::stringstream help{std::string(key.help)};
    const auto words = std::distance(std::istream_iterator<std::string>(help), {});
    EXPECT_LE(words, 40) << key.path;
    if (key.basic && key.same_as.empty()) ++basic;
  }
  EXPECT_LE(basic, 30);
}

TEST(Schema, MeansTheSameWhereAKeySaysSo) {
  for (const Key& key : Schema()) {
    if (key.same_as.empty()) continue;
    const Key* other = FindKey(key.same_as);
    ASSERT_NE(other, nullptr) << key.path;
    EXPECT_EQ(key.default_value, other->default_value) << key.path;
    EXPECT_EQ(key.type, other->type) << key.path;
  }
}

TEST(Schema, HasEachKeyOnceWithItsSectionBeforeIt) {
  std::set<std::string_view> seen = {""};
  for (const Key& key : Schema()) {
    EXPECT_TRUE(seen.contains(ParentOf(key.path))) << key.path;
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.help.empty()) << key.path;
    EXPECT_TRUE(!key.limits || !(key.limits->min.empty() || key.limits->max.empty())) << key.path;
    EXPECT_TRUE(key.type != Type::kChoice || !key.choices.empty()) << key.path;
    EXPECT_TRUE(key.type != Type::kDuration || key.limits) << key.path;
    EXPECT_TRUE(key.type != Type::kSize || key.limits) << key.path;
    const bool pipeline = key.type != Type::kSection && !InTests(key.path);
    const bool one_value = key.path == "version" || key.path == "dead_letter.on_publish_failure";
    EXPECT_TRUE(!pipeline || one_value || key.to.same) << key.path;
    const bool names = key.type == Type::kTextMap || key.type == Type::kSelectorMap;
    EXPECT_TRUE(!names || key.check != nullptr) << key.path;
  }
}

}  // namespace
}  // namespace fencepost::config
