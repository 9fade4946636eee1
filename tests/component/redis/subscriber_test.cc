// A subscriber over one real node.
#include "locking/redis/wake/subscriber.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <asio/io_context.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/component/redis/run_until.h"
#include "tests/support/servers.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::RedisServer;

class Heard final : public SubscriberClient {
 public:
  std::vector<std::string> freed;
  std::vector<std::string> notes;

  void OnFreed(std::string_view name) override { freed.emplace_back(name); }
  void OnNote(Severity, std::string_view event, std::string_view text) override {
    notes.push_back(fmt::format("{}: {}", event, text));
  }
  [[nodiscard]] std::ptrdiff_t Away() const {
    return std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("redis_wake_up_away");
    });
  }
};

class SubscriberTest : public ::testing::Test {
 protected:
  void Start(const std::string& address) {
    options_.address = ParseNodeAddress(address).value();
    subscriber_.emplace(io_, options_, heard_);
  }
  ::testing::AssertionResult RunUntil(const std::function<bool()>& condition,
                                      std::string_view what) {
    return locking::RunUntil(io_, heard_.notes, what, condition);
  }
  ::testing::AssertionResult Listens() {
    return RunUntil([&] { return subscriber_->Listening(); }, "the subscriptions");
  }
  // Published, and heard next.
  ::testing::AssertionResult Hears(const std::string& name) {
    const std::size_t before = heard_.freed.size();
    if (server_.Command({"PUBLISH", name, ""}) != "1") {
      return ::testing::AssertionFailure() << "nobody listens to " << name;
    }
    auto heard = RunUntil([&] { return heard_.freed.size() > before; }, name);
    if (heard && heard_.freed.back() != name) return ::testing::AssertionFailure() << "another";
    return heard;
  }

  RedisServer server_;
  asio::io_context io_;
  ConnectionOptions options_;
  Heard heard_;
  std::optional<Subscriber> subscriber_;
};

TEST_F(SubscriberTest, HearsOfTheNamesItWatchesAndOfNoOthers) {
  Start(server_.address());
  EXPECT_FALSE(subscriber_->Connected()) << "nobody waits yet";
  subscriber_->Watch("a");
  subscriber_->Watch("b");
  ASSERT_TRUE(Listens());
  EXPECT_TRUE(Hears("b"));
  EXPECT_TRUE(Hears("a"));
  subscriber_->Unwatch("a");
  subscriber_->Watch("c");
  ASSERT_TRUE(Listens());
  EXPECT_EQ(server_.Command({"PUBLISH", "a", ""}), "0");
  EXPECT_TRUE(Hears("c"));
  EXPECT_EQ(heard_.freed.size(), 3U);
  EXPECT_TRUE(heard_.notes.empty());
}

TEST_F(SubscriberTest, ClosesAWhileAfterTheLastNameAndComesBackForAnother) {
  Start(server_.unix_address());
  subscriber_->Watch("a");
  ASSERT_TRUE(Listens());
  subscriber_->Unwatch("a");
  EXPECT_TRUE(RunUntil([&] { return !subscriber_->Connected(); }, "the end of the connection"));
  subscriber_->Watch("b");
  ASSERT_TRUE(Listens());
  EXPECT_TRUE(Hears("b"));
}

TEST_F(SubscriberTest, SubscribesAgainWhenItsConnectionIsLost) {
  Start(server_.address());
  subscriber_->Watch("a");
  subscriber_->Watch("b");
  ASSERT_TRUE(Listens());
  for (int times = 0; times < 3; ++times) {
    ASSERT_EQ(server_.Command({"CLIENT", "KILL", "TYPE", "pubsub"}), "1");
    ASSERT_TRUE(RunUntil([&] { return !subscriber_->Connected(); }, "the loss"));
    ASSERT_TRUE(Listens());
    EXPECT_TRUE(Hears("a"));
    EXPECT_TRUE(Hears("b"));
  }
  EXPECT_EQ(heard_.Away(), 3);
}

TEST_F(SubscriberTest, SaysOnceThatTheNodeIsAwayAndFindsItAgain) {
  Start(server_.address());
  server_.Stop();
  subscriber_->Watch("a");
  ASSERT_TRUE(RunUntil([&] { return !heard_.notes.empty(); }, "the note"));
  const auto later = std::chrono::steady_clock::now() + 500ms;
  ASSERT_TRUE(RunUntil([&] { return std::chrono::steady_clock::now() > later; }, "more failures"));
  EXPECT_EQ(heard_.notes.size(), 1U);
  server_.Start();
  ASSERT_TRUE(Listens());
  EXPECT_TRUE(Hears("a"));
  EXPECT_EQ(heard_.notes.size(), 2U) << "and that it is back";
}

TEST_F(SubscriberTest, LogsInAndNeedsNoMoreRightsThanToSubscribe) {
  ASSERT_EQ(server_.Command({"ACL", "SETUSER", "lean", "reset", "on", ">secret", "&fencepost:*",
                             "-@all", "+subscribe"}),
            "OK");
  options_.username = "lean";
  options_.password = "secret";
  Start(server_.address());
  subscriber_->Watch("fencepost:{x}:a");
  subscriber_->Watch("fencepost:{x}:b");
  ASSERT_TRUE(Listens());
  subscriber_->Unwatch("fencepost:{x}:a");
  ASSERT_TRUE(Listens());
  EXPECT_TRUE(Hears("fencepost:{x}:b"));
  EXPECT_TRUE(heard_.notes.empty()) << heard_.notes[0];
}

TEST_F(SubscriberTest, LeavesANodeThatRefusesItInPeace) {
  ASSERT_EQ(server_.Command({"ACL", "SETUSER", "default", "resetchannels"}), "OK");
  Start(server_.address());
  subscriber_->Watch("a");
  ASSERT_TRUE(RunUntil([&] { return !heard_.notes.empty(); }, "the note"));
  EXPECT_NE(heard_.notes[0].find("NOPERM"), std::string::npos) << heard_.notes[0];
  EXPECT_NE(heard_.notes[0].find("&fencepost:*"), std::string::npos) << heard_.notes[0];
  const auto later = std::chrono::steady_clock::now() + 500ms;
  ASSERT_TRUE(RunUntil([&] { return std::chrono::steady_clock::now() > later; }, "nothing more"));
  subscriber_->Watch("b");
  EXPECT_FALSE(subscriber_->Connected());
  EXPECT_EQ(heard_.notes.size(), 1U);
}

}  // namespace
}  // namespace fencepost::locking
