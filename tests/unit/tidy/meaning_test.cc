// Code decides by values: by a code, an enum, a field. A sentence is made where it is shown, and
// whoever words it better must not change what a program does.
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tidy/source_tree.h"

namespace fencepost::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What speaks no code, each with the only place where its words are read.
const std::set<std::string_view>& Readers() {
  static const std::set<std::string_view> readers = {
      "consumer/outputs/postgres/postgres_errors.cc",  // PostgreSQL: the context of an error
      "locking/redis/session/node_error.cc",           // Redis: its error answers
  };
  return readers;
}

Complaints NothingIsDecidedByASentence(const SourceFile& file) {
  // A text with a blank in it, or one that is named as what a person reads.
  static const std::regex kSentence(
      R"(\b(find|rfind|starts_with|ends_with|contains)\("[^"]* [^"]*[A-Za-z(][^"]*"|)"
      R"([!=]= "[^"]*[A-Za-z] [^"]*"|[!=]= "[^"]* [A-Za-z][^"]*")");
  static const std::regex kNamed(
      R"(\b(what|reason|problem|detail|trouble)_?(\(\))?\.(find|starts_with|contains)\()");
  Complaints complaints;
  if (!IsSource(file) || Under(file, "tests") || Readers().contains(file.path)) return {};
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i].begin(), lines[i].end(), kSentence) ||
        std::regex_search(lines[i].begin(), lines[i].end(), kNamed)) {
      complaints.push_back(Complaint(file, i + 1, "decides by a sentence: give it a code"));
    }
  }
  return complaints;
}

TEST(Meaning, IsNotReadFromASentence) {
  EXPECT_THAT(Check(NothingIsDecidedByASentence), IsEmpty());
}

TEST(Meaning, IsMissedWhereASentenceDecides) {
  for (const char* line :
       {R"(if (reason == "kafka: joining the group") return;)",
        R"(if (text.find("no quorum") != npos) return;)",
        R"(return line.starts_with("lock node ");)", R"(return error.what.find("clock") != npos;)",
        R"(return node.problem.starts_with(one.problem);)"}) {
    EXPECT_THAT(NothingIsDecidedByASentence({"metrics/a.cc", line}),
                ElementsAre("metrics/a.cc:1: decides by a sentence: give it a code"))
        << line;
  }
}

TEST(Meaning, MayBeReadFromWordsOfAProtocolAndFromCodes) {
  EXPECT_THAT(NothingIsDecidedByASentence({"metrics/a.cc",
                                           R"(if (error.code == "no_quorum") return;
if (text.starts_with("redis://") || text.find(", ") != npos) return;
if (what == "message") return;
)"}),
              IsEmpty());
}

// An exception that is needed no more goes.
TEST(Meaning, IsReadByEachOfTheExceptions) {
  std::set<std::string> found;
  for (const SourceFile& file : AllFiles()) {
    if (!Readers().contains(file.path)) continue;
    if (!NothingIsDecidedByASentence({"a.cc", file.text}).empty()) found.insert(file.path);
  }
  EXPECT_THAT(found, SizeIs(Readers().size()));
}

}  // namespace
}  // namespace fencepost::tidy
