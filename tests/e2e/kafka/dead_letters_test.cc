// Dead letters against a real broker, which does not create topics by itself.
#include "consumer/kafka/output/dead_letter_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <set>

#include <fmt/format.h>

#include "tests/e2e/kafka/broker_fixture.h"
#include "tests/support/process.h"

namespace fencepost::consumer::testing {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::ReadTopic;
using fencepost::testing::TestRecord;
using fencepost::testing::WaitUntil;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class DeadLettersOnBroker : public OnBroker, public ConsumerObserver {
 protected:
  template <typename F>
  auto Locked(F&& f) {
    const std::lock_guard lock(mutex);
    return f();
  }
  void SetUp() override { Make({}); }
  void Make(std::map<std::string, std::string> librdkafka) {
    KafkaOptions kafka;
    kafka.brokers = {broker->bootstrap()};
    kafka.librdkafka = {librdkafka.begin(), librdkafka.end()};
    letters = std::make_unique<DeadLetterPublisher>(
        kafka, DeadLetterOptions{topic}, "orders", this,
        [this](DeadLetterPublisher::Ids taken, DeadLetterPublisher::Ids not_taken) {
          Locked([&] {
            published.insert(published.end(), taken.begin(), taken.end());
            refused.insert(not_taken.begin(), not_taken.end());
          });
        },
        [this](bool up, std::string reason) {
          Locked([&] { states.push_back((up ? "up " : "down ") + reason); });
        });
  }
  void OnDeadLetterError() override { ++errors; }
  void OnNote(locking::Severity, std::string_view event, std::string_view text) override {
    Locked([&] { notes.push_back(fmt::format("{}: {}", event, text)); });
  }
  static DeadLetter Letter(std::uint64_t id, std::string_view value) {
    DeadLetter letter;
    letter.id = id;
    letter.where = {"in", 3};
    letter.record.offset = 40 + static_cast<Offset>(id);
    letter.record.key = "k";
    letter.record.value = value;
    letter.record.timestamp = 1'700'000'000'000ms;
    letter.record.headers = {{"own", "1"}, {"none", std::nullopt}, {"fencepost-attempts", "9"}};
    letter.record_id = "o-1";
    letter.reason = DeadLetterReason::kHandler;
    letter.error = "the receiver refused";
    letter.error_class = "404";
    letter.attempts = 5;
    letter.failed_at = 1'700'000'001'250ms;
    return letter;
  }
  std::vector<std::uint64_t> Published() {
    return Locked([&] { return published; });
  }
  std::vector<std::string> States() {
    return Locked([&] { return states; });
  }

  std::mutex mutex;
  std::vector<std::uint64_t> published;
  std::set<std::uint64_t> refused;
  std::vector<std::string> states, notes;
  std::atomic<int> errors = 0;
  std::unique_ptr<DeadLetterPublisher> letters;  // last: its thread calls back
};

// Bytes that no compression makes smaller.
std::string Noise(std::size_t size) {
  std::minstd_rand random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
  return bytes;
}

TEST_F(DeadLettersOnBroker, ThatAreTooLargeOnlyTogetherGoOneByOne) {
  broker->admin().CreateTopic(topic, 1, {{"max.message.bytes", "20000"}});
  ASSERT_TRUE(letters->Start());
  const std::string value = Noise(5000);
  std::vector<DeadLetter> ten;
  for (std::uint64_t id = 1; id <= 10; ++id) ten.push_back(Letter(id, value));
  letters->Publish(ten);
  ASSERT_TRUE(WaitUntil(20s, [&] { return Published().size() == 10; }));
  EXPECT_THAT(Published(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(States(), IsEmpty());
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(ReadTopic(broker->bootstrap(), topic).size(), 10u);
}

TEST_F(DeadLettersOnBroker, AreCompressedLikeTheRecordsThatTheyWere) {
  broker->CreateTopic(topic, 1);
  ASSERT_TRUE(letters->Start());
  const std::string value(1'500'000, 'x');  // above the topic's limit of 1 MiB by itself
  letters->Publish({Letter(1, value), Letter(2, "b")});
  ASSERT_TRUE(WaitUntil(20s, [&] { return Published().size() == 2; })) << errors;
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(ReadTopic(broker->bootstrap(), topic)[0].value, value);
}

TEST_F(DeadLettersOnBroker, LoseTheirErrorsTextBeforeTheyWait) {
  broker->admin().CreateTopic(topic, 1, {{"max.message.bytes", "20000"}});
  ASSERT_TRUE(letters->Start());
  const std::string middle = Noise(19'000);
  const std::string large = Noise(19'600);
  DeadLetter first = Letter(1, middle);
  first.error.clear();
  DeadLetter second = Letter(2, large);
  for (std::size_t i = 0; i < 3000; ++i) first.error += "0123456789abcdef"[middle[i] & 15];
  second.error = first.error;
  letters->Publish({first, second});
  ASSERT_TRUE(WaitUntil(20s, [&] { return Published().size() == 2; }));
  const auto dead = ReadTopic(broker->bootstrap(), topic);
  ASSERT_EQ(dead.size(), 2u);
  EXPECT_EQ(dead[0].value, middle);
  EXPECT_EQ(dead[0].Header("fencepost-error"), first.error.substr(0, 197) + "...");
  EXPECT_EQ(dead[1].value, large);
  EXPECT_EQ(dead[1].Header("fencepost-error"), "");
  EXPECT_EQ(dead[1].Header("own"), "1");
  EXPECT_THAT(States(), IsEmpty());
}

TEST_F(DeadLettersOnBroker, WhoseTimeIsRefusedGoWithoutItAndHaveItInAHeader) {
  broker->admin().CreateTopic(topic, 1, {{"message.timestamp.before.max.ms", "3600000"}});
  ASSERT_TRUE(letters->Start());
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  DeadLetter young = Letter(1, "young");
  young.record.timestamp = now;
  DeadLetter early = Letter(3, "of microseconds");
  early.record.timestamp = 1'716'804'532'123'456ms;
  letters->Publish({young, Letter(2, "old"), early});
  ASSERT_TRUE(WaitUntil(20s, [&] { return Published().size() == 3; }));
  std::map<std::string, TestRecord> dead;
  for (const TestRecord& record : ReadTopic(broker->bootstrap(), topic)) {
    dead[*record.value] = record;
  }
  EXPECT_EQ(dead["young"].timestamp_ms, now.count());
  EXPECT_EQ(dead["young"].Header("fencepost-timestamp"), std::nullopt);
  for (const auto& [value, time] :
       {std::pair("old", "1700000000000"), std::pair("of microseconds", "1716804532123456")}) {
    EXPECT_EQ(dead[value].Header("fencepost-timestamp"), time);
    EXPECT_GE(dead[value].timestamp_ms, now.count());
    EXPECT_EQ(dead[value].Header("fencepost-error"), "the receiver refused");
  }
  EXPECT_EQ(errors, 0);
  EXPECT_THAT(States(), IsEmpty());
}

TEST_F(DeadLettersOnBroker, WithoutAKeyWaitForATopicThatIsCompactedAndHoldUpNobodyElse) {
  broker->admin().CreateTopic(topic, 1, {{"cleanup.policy", "compact"}});
  ASSERT_TRUE(letters->Start());
  DeadLetter keyless = Letter(1, "a");
  keyless.record.key.reset();
  letters->Publish({keyless, Letter(2, "b")});
  ASSERT_TRUE(WaitUntil(20s, [&] { return !Published().empty() && !States().empty(); }));
  EXPECT_THAT(Published(), ElementsAre(2));
  EXPECT_THAT(States().back(),
              AllOf(StartsWith(fmt::format("up in/3/41 waits: let {} take it (", topic)),
                    HasSubstr(fmt::format("it has no key, and where cleanup.policy of {} is "
                                          "compact, it takes none without",
                                          topic))));
  broker->admin().SetTopicConfig(topic, "cleanup.policy", "delete");
  ASSERT_TRUE(WaitUntil(60s, [&] { return Published().size() == 2; }));
  EXPECT_EQ(States().back(), "up ");
}

TEST_F(DeadLettersOnBroker, WaitOneByOneForTheLimitThatTheyNeedAndHoldUpNobodyElse) {
  broker->admin().CreateTopic(topic, 1, {{"max.message.bytes", "20000"}});
  Make({{"compression.type", "none"}});  // then what is said to be needed is needed to the byte
  ASSERT_TRUE(letters->Start());
  const std::string large = Noise(30'000);
  letters->Publish({Letter(1, large)});
  ASSERT_TRUE(WaitUntil(20s, [&] { return errors >= 1; }));
  letters->Publish({Letter(2, "b")});
  ASSERT_TRUE(WaitUntil(20s, [&] { return !Published().empty(); }));
  EXPECT_THAT(Published(), ElementsAre(2));
  // Up: the pipeline goes on. 30,325 bytes: a batch with this letter alone.
  EXPECT_THAT(States(),
              ElementsAre(fmt::format(
                  "up in/3/41 waits: raise max.message.bytes of {} to at least 30325", topic)));
  EXPECT_THAT(Locked([&] { return notes.back(); }), HasSubstr("to at least 30325"));
  // One byte less is enough without the error's text; with it, that many are.
  broker->admin().SetTopicConfig(topic, "max.message.bytes", "30324");
  ASSERT_TRUE(WaitUntil(60s, [&] { return Published().size() == 2; }));
  EXPECT_EQ(States().back(), "up ");
  broker->admin().SetTopicConfig(topic, "max.message.bytes", "30325");
  letters->Publish({Letter(3, large)});
  ASSERT_TRUE(WaitUntil(60s, [&] { return Published().size() == 3; }));
  const auto dead = ReadTopic(broker->bootstrap(), topic);
  EXPECT_EQ(dead[1].Header("fencepost-error"), "");
  EXPECT_EQ(dead[2].Header("fencepost-error"), "the receiver refused");
}

TEST_F(DeadLettersOnBroker, ThatAreDroppedGoNoMoreAndAreNoReasonAnyMore) {
  broker->admin().CreateTopic(topic, 1, {{"max.message.bytes", "20000"}});
  ASSERT_TRUE(letters->Start());
  letters->Publish({Letter(1, Noise(30'000)), Letter(2, Noise(30'000))});
  ASSERT_TRUE(WaitUntil(20s, [&] { return Locked([&] { return refused.size(); }) == 2; }));
  letters->Drop({1});
  ASSERT_TRUE(WaitUntil(20s, [&] { return States().back().find("up in/3/42 waits") == 0; }));
  broker->admin().SetTopicConfig(topic, "max.message.bytes", "1000000");
  ASSERT_TRUE(WaitUntil(60s, [&] { return !Published().empty(); }));
  EXPECT_THAT(Published(), ElementsAre(2));
  EXPECT_EQ(ReadTopic(broker->bootstrap(), topic).size(), 1u);
  EXPECT_EQ(States().back(), "up ");
}

TEST_F(DeadLettersOnBroker, WithoutAnAcknowledgementAreDroppedByAStop) {
  ASSERT_TRUE(letters->Start());
  letters->Publish({Letter(1, "a")});
  ASSERT_TRUE(WaitUntil(20s, [&] {
    const auto told = States();
    return !told.empty() && told.back().find("does not exist") != std::string::npos;
  }));
  letters->Stop();
  EXPECT_THAT(Published(), IsEmpty());
}

}  // namespace
}  // namespace fencepost::consumer::testing
