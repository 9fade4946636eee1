// Records that wait in the source for a schema, against the mock cluster.
#include <atomic>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "consumer/kafka/client/producer.h"
#include "tests/component/kafka/orders_on_mock.h"
#include "tests/component/kafka/reader.h"

namespace fencepost::consumer::testing {
namespace {

// Has every schema but that of one record's value, until it is opened.
class Gate : public RecordDecoder {
 public:
  explicit Gate(std::string value) : value_(std::move(value)) {}
  std::size_t Decode(std::span<Record> records) override {
    for (std::size_t done = 0; done < records.size(); ++done) {
      if (!open_ && records[done].value == value_) {
        ++waits_;
        return done;
      }
    }
    return records.size();
  }
  [[nodiscard]] std::string Trouble() const override { return open_ ? "" : "HTTP 503"; }
  void Open() { open_ = true; }
  [[nodiscard]] bool Waits() const { return waits_ > 0; }

 private:
  const std::string value_;
  std::atomic<bool> open_ = false;
  std::atomic<int> waits_ = 0;
};

class DecodingOnMock : public OrdersOnMock {
 protected:
  void SetUp() override {
    auto producer = Producer::Make(options);
    ASSERT_TRUE(producer);
    for (int i = 0; i < 1000; ++i) {
      const std::string value = fmt::format("{}-{}", i % 2, i / 2);
      OutgoingRecord record;
      record.topic = "orders";
      record.partition = i % 2;
      record.value = value;
      ASSERT_TRUE((*producer)->Send(record));
    }
    ASSERT_TRUE((*producer)->Flush(10s));
  }
  static std::size_t Notes(const RecordingSink& sink, const std::string& event) {
    return sink.Locked([&] {
      return static_cast<std::size_t>(
          std::count_if(sink.notes.begin(), sink.notes.end(),
                        [&](const std::string& note) { return note.starts_with(event + ": "); }));
    });
  }
};

TEST_F(DecodingOnMock, ARecordThatWaitsForItsSchemaIsOvertakenByNothingAndSaysSoOnce) {
  const auto gate = std::make_shared<Gate>("1-250");
  Reader sink(options, "w1", {.decoder = gate});
  ASSERT_TRUE(sink.Start());
  const auto down = [&] {
    return sink.Locked([&] {
      return !sink.up && !sink.reasons.empty() &&
             sink.reasons.back() == "the schema registry is unavailable: HTTP 503";
    });
  };
  ASSERT_TRUE(WaitUntil(20s, down)) << sink.Trace();
  // What is in front of it was handed over; all that came with it or behind it waits.
  ASSERT_TRUE(WaitUntil(5s, [&] {
    return sink.Offsets({"orders", 1}) == UpTo(250);
  })) << sink.Trace();
  gate->Open();
  ASSERT_TRUE(sink.Reads(1000));
  EXPECT_EQ(sink.Offsets({"orders", 0}), UpTo(500));
  EXPECT_EQ(sink.Offsets({"orders", 1}), UpTo(500));
  EXPECT_TRUE(sink.Until([&] { return sink.up; }));
  EXPECT_EQ(Notes(sink, "schema_registry_unavailable"), 1u);
  EXPECT_EQ(Notes(sink, "schema_registry_available"), 1u);
}

TEST_F(DecodingOnMock, NothingIsDecodedWhileThereIsNoRoomForWhatItBecomes) {
  class Counting : public RecordDecoder {
   public:
    std::size_t Decode(std::span<Record> records) override {
      ++calls;
      return std::min<std::size_t>(records.size(), 10);  // the others would be too much at a time
    }
    [[nodiscard]] std::string Trouble() const override { return ""; }
    std::atomic<int> calls = 0;
  };
  const auto decoder = std::make_shared<Counting>();
  Reader sink(options, "w1", {.decoder = decoder});
  sink.on_records = [&] { sink.room_bytes = 0; };  // full by the first of them
  ASSERT_TRUE(sink.Start());
  for (int turn = 1; turn <= 5; ++turn) {
    ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() > 0 && sink.room_bytes == 0; }));
    ASSERT_EQ(decoder->calls, turn);
    sink.room_bytes = 1 << 20;
  }
  sink.on_records = nullptr;
  ASSERT_TRUE(WaitUntil(20s, [&] {
    sink.room_bytes = 1 << 20;
    return sink.Count() == 1000;
  })) << sink.Trace();
}

TEST_F(DecodingOnMock, ARevokeIsServedMeanwhileAndDropsWhatWaits) {
  const auto gate = std::make_shared<Gate>("0-0");
  Reader first(options, "w1", {.decoder = gate});
  ASSERT_TRUE(first.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return gate->Waits(); })) << first.Trace();
  Reader second(options, "w2");
  ASSERT_TRUE(second.Start());
  ASSERT_TRUE(first.Owns(1) && second.Owns(1)) << first.Trace() << second.Trace();
  gate->Open();
  const auto all = [&] {
    for (const int partition : {0, 1}) {
      const TopicPartition where{"orders", partition};
      if (first.Offsets(where).size() < 500 && second.Offsets(where).size() < 500) return false;
    }
    return true;
  };
  EXPECT_TRUE(WaitUntil(20s, all)) << first.Trace();
  EXPECT_FALSE(first.early);
  EXPECT_FALSE(second.early);
}

}  // namespace
}  // namespace fencepost::consumer::testing
