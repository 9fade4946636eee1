// metrics/log/EVENTS.md lists the log's events: what the source writes stands there, and nothing
// else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/paths.h"

namespace fencepost::metrics {
namespace {

using ::testing::ContainerEq;
using ::testing::IsSupersetOf;

const std::filesystem::path kSource = testing::SourcePath();

std::string Read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void Find(const std::string& text, const std::string& pattern, std::set<std::string>& found) {
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
}

// Names in the list: - `name`: …
std::set<std::string> Listed() {
  std::set<std::string> names;
  Find(Read(kSource / "metrics/log/EVENTS.md"), R"x(\n- `([a-z_*]+)`: )x", names);
  return names;
}

// The event is the literal after the severity, which may be a choice of two.
std::set<std::string> Written() {
  std::string all;
  for (const char* folder : {"consumer", "locking", "metrics"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kSource / folder)) {
      const auto extension = entry.path().extension();
      if (extension == ".cc" || extension == ".h") all += Read(entry.path());
    }
  }
  std::set<std::string> names;
  const std::string after = "Severity::k[A-Z][a-z]+,";
  Find(all, after + R"re(\s*(?:(?:""|[a-z_.]+),\s*)?"([a-z_]+)")re", names);
  Find(all, after + R"re([^"]{0,80}\? "([a-z_]+)" : ")re", names);
  Find(all, after + R"re([^"]{0,80}\? "[a-z_]+" : "([a-z_]+)")re", names);
  Find(all, R"re(note_\("([a-z_]+)")re", names);
  // The end of a worker and a warning of its output are named by the code of the error, and a
  // reload by its outcome.
  for (const char* code :
       {"bad_record", "kafka_fatal", "kafka_unreadable", "ledger_gone", "lost_commits",
        "offset_out_of_range", "offsets_expired", "partition_taken_over", "producer_fenced",
        "too_many_topics", "topic_replaced", "worker_name_taken", "ledger_behind_the_group",
        "reloaded", "reload_refused"}) {
    EXPECT_NE(all.find('"' + std::string(code) + '"'), std::string::npos) << code;
    names.insert(code);
  }
  // Names that librdkafka completes.
  names.erase("kafka_");
  names.insert({"kafka_*", "librdkafka_*"});
  return names;
}

TEST(Events, AreTheListedOnes) { EXPECT_THAT(Listed(), ContainerEq(Written())); }

TEST(Events, AreFoundWhereTheyAreWritten) {
  EXPECT_THAT(Written(), IsSupersetOf({"handler_failed", "http_listening", "node_clock_stepped",
                                       "commit_rejected", "invariant_violated", "bad_record"}));
}

}  // namespace
}  // namespace fencepost::metrics
