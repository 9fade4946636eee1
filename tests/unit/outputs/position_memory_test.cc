#include "consumer/outputs/ledger/position_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const PositionKey kKey{"C", {"orders", 3}};

PositionPart Part(Offset begin, Offset end) {
  PositionPart part{.key = kKey};
  part.ranges.Add(begin, end);
  return part;
}

PositionPart Written(Offset begin, Offset end) {
  PositionPart part = Part(begin, end);
  part.oldest = LogSample{.offset = begin, .timestamp = 1, .content = 1};
  part.newest = LogSample{.offset = end - 1, .timestamp = 1, .content = 1};
  return part;
}

PositionRow Row(const char* done, std::int64_t forgotten = 0) {
  PositionRow row{.done = PositionRanges::Parse(done).value(), .forgotten = forgotten};
  row.anchors.Add({.offset = 8, .timestamp = 1, .content = 1});
  return row;
}

class PositionMemoryTest : public ::testing::Test {
 protected:
  PositionMemoryTest() {
    terms_.read_log =
        [this](const LogQuestion& asked) -> tl::expected<std::optional<LogState>, Error> {
      ++reads_;
      asked_ = asked.offsets;
      std::ranges::sort(asked_, std::greater());
      if (away_ || asked.where == unread_)
        return tl::unexpected(Error{"kafka_unreachable", "no broker answers", "", ""});
      return log_;
    };
  }
  [[nodiscard]] std::string BackTo(std::vector<std::optional<PositionRow>> rows) const {
    const auto lost = memory_.Lost(rows);
    if (!lost) return "";
    return fmt::format("{} from {}", lost->commits, lost->back_to.at(0).next);
  }

  OutputTerms terms_;
  std::optional<LogState> log_;
  int reads_ = 0;
  std::vector<Offset> asked_;
  bool away_ = false;
  TopicPartition unread_;
  PositionMemory memory_{"worker-1", terms_};
};

TEST_F(PositionMemoryTest, ComparesALogOnceAnAssignment) {
  log_ = LogState{.end = 9, .records = {{.offset = 8, .timestamp = 1, .content = 1}}};
  for (const AssignmentEpoch epoch : {1, 1, 2, 1}) {
    memory_.OnAssignment(epoch);
    EXPECT_TRUE(memory_.Compare(kKey, Row("{[0,9)}")));
  }
  EXPECT_EQ(reads_, 2);
}

// Who had the partition before may write what it had in hand of the former log.
TEST_F(PositionMemoryTest, AnAnchorThatAnotherHasWrittenSinceIsComparedToo) {
  log_ = LogState{.end = 20,
                  .records = {{.offset = 2, .timestamp = 5, .content = 5},
                              {.offset = 8, .timestamp = 1, .content = 1}}};
  memory_.OnAssignment(1);
  PositionRow row = Row("{[8,9)}");
  EXPECT_TRUE(memory_.Compare(kKey, row));
  const PositionPart part = Written(9, 12);
  EXPECT_TRUE(memory_.OnCommitted(part, row));
  row.done.Add(9, 12);
  row.anchors.Add(part.oldest, part.newest);
  EXPECT_TRUE(memory_.Compare(kKey, row));
  EXPECT_EQ(reads_, 1) << "its own it knows";
  row.done.Add(2, 3);
  row.anchors.Add({.offset = 2, .timestamp = 1, .content = 1});
  const auto same = memory_.Compare(kKey, row);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
}

// The next anchors that are stored here may take its place, and it would be found no more.
TEST_F(PositionMemoryTest, AnAnchorThatAnotherHasWrittenIsComparedWithTheNextWriteWhereverThatIs) {
  log_ = LogState{.end = 90, .records = {{.offset = 60, .timestamp = 5, .content = 5}}};
  memory_.OnAssignment(1);
  PositionRow row = Row("{[8,9)}");
  EXPECT_TRUE(memory_.OnCommitted(Written(9, 12), row));
  row.anchors.Add(Written(9, 12).oldest, Written(9, 12).newest);
  row.done = PositionRanges();
  EXPECT_TRUE(memory_.OnCommitted(Written(12, 20), row));
  EXPECT_EQ(reads_, 0) << "it knows its own";
  row.anchors.Add({.offset = 60, .timestamp = 1, .content = 1});
  const auto same = memory_.OnCommitted(Written(20, 30), row);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
}

TEST_F(PositionMemoryTest, AnAnchorThatAnotherHasWrittenIsComparedAfterAReconnect) {
  log_ = LogState{.end = 90, .records = {{.offset = 60, .timestamp = 5, .content = 5}}};
  for (const bool reads_row : {false, true}) {
    PositionMemory memory("w", terms_);
    memory.OnAssignment(1);
    PositionRow row = Row("{[8,9)}");
    EXPECT_TRUE(memory.OnCommitted(Written(9, 12), row));
    row.anchors.Add(Written(9, 12).oldest, Written(9, 12).newest);
    row.done = PositionRanges();
    row.anchors.Add({.offset = 60, .timestamp = 1, .content = 1});
    memory.OnConnected();
    if (reads_row) memory.Learn(kKey, row.anchors);
    const auto same = memory.OnCommitted(Written(20, 30), row);
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().error.code, "topic_replaced");
  }
}

// Its write was held up until the partition had been given away and was back, with another log.
TEST_F(PositionMemoryTest, WhatWasReadInAFormerAssignmentIsComparedWhenItIsWritten) {
  log_ = LogState{.end = 20, .records = {{.offset = 11, .timestamp = 1, .content = 1}}};
  memory_.OnAssignment(2);
  PositionRow row = Row("{}");
  PositionPart part = Written(9, 12);
  part.epoch = 2;
  EXPECT_TRUE(memory_.OnCommitted(part, row));
  EXPECT_EQ(reads_, 0) << "of this assignment";
  part = Written(12, 14);
  part.epoch = 1;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(memory_.OnCommitted(part, row));
    EXPECT_EQ(reads_, 1) << "once";
    EXPECT_THAT(asked_, ElementsAre(13, 12, 8));
    row.anchors.Add(part.oldest, part.newest);
    row.done.Add(12, 14);
  }
  part = Written(14, 16);
  part.epoch = 1;
  log_->records = {{.offset = 15, .timestamp = 5, .content = 5}};
  const auto same = memory_.OnCommitted(part, row);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
}

TEST_F(PositionMemoryTest, ReadingAgainWhatIsDoneReadsTheLogOnce) {
  log_ = LogState{.end = 5000, .records = {{.offset = 8, .timestamp = 1, .content = 1}}};
  memory_.OnAssignment(1);
  PositionRow row = Row("{[0,5000)}");
  for (Offset at = 10; at < 5000; at *= 2)
    row.anchors.Add({.offset = at, .timestamp = 1, .content = 1});
  for (Offset at = 0; at < 4000; at += 50)
    EXPECT_TRUE(memory_.OnCommitted(Written(at, at + 50), row));
  EXPECT_EQ(reads_, 1);
}

TEST_F(PositionMemoryTest, WhatItHasWrittenItselfIsComparedOnceAnAssignmentToo) {
  log_ = LogState{.end = 90, .records = {}};
  memory_.OnAssignment(1);
  const auto row_without_anchors = [](const std::vector<PositionPart>& /*parts*/) {
    return PositionMemory::Rows{PositionRow()};
  };
  EXPECT_TRUE(memory_.BeforeWrite({Written(0, 9)}, row_without_anchors));
  EXPECT_TRUE(memory_.OnCommitted(Written(0, 9), PositionRow()));
  EXPECT_EQ(reads_, 0);
  const PositionRow row{.done = PositionRanges::Parse("{[0,9)}").value(),
                        .anchors = PositionAnchors::Parse("8:1:1 0:1:1")};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(memory_.Compare(kKey, row));
    EXPECT_EQ(reads_, 1);
  }
}

TEST_F(PositionMemoryTest, AnotherLogIsFatalEachTimeItIsAsked) {
  log_ = LogState{.end = 9, .records = {{.offset = 8, .timestamp = 2, .content = 1}}};
  for (int i = 0; i < 2; ++i) {
    const auto same = memory_.Compare(kKey, Row("{[0,9)}"));
    ASSERT_FALSE(same);
    EXPECT_TRUE(same.error().fatal);
    EXPECT_EQ(same.error().error.code, "topic_replaced");
    EXPECT_THAT(same.error().error.Line(), HasSubstr("orders/3"));
  }
}

// By records that `when` left out.
TEST_F(PositionMemoryTest, AGroupThatGoesOnBehindWhatIsDoneIsNotNamedWhereRecordsAreFiltered) {
  terms_.filtered = true;
  PositionMemory memory("worker-1", terms_);
  PositionPart part = Written(12, 14);
  part.start = 12;
  log_ = LogState{.end = 20, .records = {{.offset = 10}}};
  memory.OnAssignment(1);
  EXPECT_TRUE(memory.BeforeWrite({part}, [&](const std::vector<PositionPart>& /*parts*/) {
    PositionRow row = Row("{[0,9)}");
    row.anchors = {};
    return PositionMemory::Rows{row};
  }));
}

// What another worker committed to Kafka, and the database has lost since.
TEST_F(PositionMemoryTest, AGroupThatGoesOnBehindWhatIsDoneIsNamedOnceAnAssignment) {
  struct Behind {
    const char* done;
    Offset start;
    std::optional<Offset> record;  // that the log has between
    bool named;
  };
  const Behind all[] = {{"{[0,9)}", 12, 10, true},           {"{[0,9)}", 12, std::nullopt, false},
                        {"{[0,9)}", 9, 10, false},           {"{[0,9),[20,22)}", 12, 10, false},
                        {"{[0,9)}", 1'000'000, 9, true},     {"{[0,9)}", 1'000'000, 999'999, true},
                        {"{[0,9)}", 10, std::nullopt, false}};
  AssignmentEpoch epoch = 0;
  for (const Behind& one : all) {
    PositionPart part = Written(one.start, one.start + 2);
    part.epoch = ++epoch;
    part.start = one.start;
    log_ = LogState{.end = 2'000'000, .records = {}};
    memory_.OnAssignment(epoch);
    const auto write = [&] {
      return memory_.BeforeWrite({part}, [&](const std::vector<PositionPart>& /*parts*/) {
        log_->records.clear();
        if (one.record) log_->records.push_back({.offset = *one.record});
        PositionRow row = Row(one.done);
        row.anchors = {};
        return PositionMemory::Rows{row};
      });
    };
    const auto first = write();
    EXPECT_EQ(!first, one.named) << one.done << one.start;
    if (first) continue;
    EXPECT_EQ(first.error().error.code, "ledger_behind_the_group");
    EXPECT_TRUE(first.error().retry_at_once);
    EXPECT_THAT(first.error().error.Line(),
                HasSubstr(fmt::format("orders/3: the group goes on at offset {}, and in the ledger "
                                      "nothing from offset 9 on is done",
                                      one.start)));
    EXPECT_TRUE(write()) << "it is said once";
  }
}

TEST_F(PositionMemoryTest, BeforeTheFirstWriteOfAnAssignmentTheLogOfARowIsCompared) {
  PositionPart part = Part(9, 12);
  part.newest = LogSample{.offset = 11, .timestamp = 1, .content = 1};
  std::optional<PositionRow> row;
  const auto write = [&] {
    return memory_.BeforeWrite({part}, [&](const std::vector<PositionPart>& /*parts*/) {
      return PositionMemory::Rows{row};
    });
  };
  log_ = LogState{.end = 12, .records = {{.offset = 8, .timestamp = 1, .content = 1}}};
  memory_.OnAssignment(1);
  EXPECT_TRUE(write()) << "nothing is done there";
  row = Row("{[0,9)}");
  EXPECT_TRUE(write()) << "not the first";
  EXPECT_EQ(reads_, 0);
  memory_.OnAssignment(2);
  EXPECT_TRUE(write());
  EXPECT_TRUE(write());
  EXPECT_EQ(reads_, 1);
  log_->records.front().timestamp = 2;
  memory_.OnAssignment(3);
  for (int i = 0; i < 2; ++i) {
    const auto same = write();
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().error.code, "topic_replaced");
  }
  EXPECT_EQ(reads_, 3);
  part.newest.reset();
  EXPECT_TRUE(write()) << "replays say nothing of the log";
  EXPECT_EQ(reads_, 3);
}

TEST_F(PositionMemoryTest, AFirstWriteAtTheEndOfWhatIsDoneReadsOneRecord) {
  PositionPart part = Part(9, 12);
  part.newest = LogSample{.offset = 11, .timestamp = 1, .content = 1};
  PositionRow row = Row("{[0,9)}");
  row.anchors.Add({.offset = 1, .timestamp = 1, .content = 1});
  const auto write = [&] {
    return memory_.BeforeWrite({part}, [&](const std::vector<PositionPart>& parts) {
      EXPECT_EQ(parts.at(0).ranges.Text(), "{[0,9223372036854775807)}");
      return PositionMemory::Rows{row};
    });
  };
  log_ = LogState{.end = 12, .records = {{.offset = 8, .timestamp = 1, .content = 1}}};
  memory_.OnAssignment(1);
  EXPECT_TRUE(write());
  EXPECT_THAT(asked_, ElementsAre(8));
  away_ = true;
  memory_.OnAssignment(2);
  EXPECT_FALSE(write());
  row.done.Add(12, 13);  // behind it
  memory_.OnAssignment(3);
  EXPECT_FALSE(write());
  away_ = false;
  EXPECT_TRUE(write());
  EXPECT_THAT(asked_, ElementsAre(8, 1));
}

// Its worker may end before it compares what it found done, and its anchors are stored by then.
TEST_F(PositionMemoryTest, AFirstWriteOfWhatIsDoneComparesAllAnchorsBeforeItsOwnTakeTheirPlace) {
  PositionRow row = Row("{[7,9)}");
  row.anchors.Add({.offset = 7, .timestamp = 1, .content = 1});
  const auto write = [&] {
    return memory_.BeforeWrite({Written(6, 9)}, [&](const std::vector<PositionPart>& parts) {
      EXPECT_EQ(parts.at(0).ranges.Text(), "{[0,9223372036854775807)}");
      return PositionMemory::Rows{row};
    });
  };
  log_ = LogState{.end = 9,
                  .records = {{.offset = 7, .timestamp = 5, .content = 5},
                              {.offset = 8, .timestamp = 1, .content = 1}}};
  memory_.OnAssignment(1);
  const auto same = write();
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
  log_->records.front() = {.offset = 7, .timestamp = 1, .content = 1};
  EXPECT_TRUE(write());
  EXPECT_TRUE(write());
  EXPECT_EQ(reads_, 2) << "the first alone";
}

// --- a record of the former log, at 5, amid those of the new one ---

LogState NewLog() {
  LogState log{.end = 60, .records = {}};
  for (Offset at = 0; at < 60; ++at)
    log.records.push_back({.offset = at, .timestamp = 1, .content = 1});
  return log;
}

PositionRow RowWithFormer() {
  return {.done = PositionRanges::Parse("{[0,4),[5,21)}").value(),
          .anchors = PositionAnchors::Parse("20:1:1 5:9:9 3:1:1")};
}

// Who has written since × which assignment × whether all was new: what is compared.
TEST_F(PositionMemoryTest, AfterACommitWhatMayBeOfAnotherLogIsCompared) {
  struct Case {
    bool another, former, overlap;
    std::vector<Offset> asked;
  };
  const Case cases[] = {
      {false, false, false, {}},           {false, false, true, {8}},
      {true, false, false, {11, 9, 8, 5}}, {true, false, true, {11, 9, 8, 5}},
      {false, true, false, {11, 9, 8}},    {false, true, true, {11, 9, 8}},
      {true, true, false, {11, 9, 8, 5}},  {true, true, true, {11, 9, 8, 5}},
  };
  for (const Case& row : cases) {
    log_ = LogState{.end = 20, .records = {}};
    asked_.clear();
    PositionMemory memory("w", terms_);
    memory.OnAssignment(2);
    memory.Learn(kKey, PositionAnchors::Parse("8:1:1"));
    PositionRow before = Row(row.overlap ? "{[8,10)}" : "{[8,9)}");
    if (row.another) before.anchors.Add({.offset = 5, .timestamp = 9, .content = 9});
    PositionPart part = Written(9, 12);
    part.epoch = row.former ? 1 : 2;
    EXPECT_TRUE(memory.OnCommitted(part, before));
    EXPECT_EQ(asked_, row.asked) << row.another << row.former << row.overlap;
  }
}

// No look-up told of a newer assignment while the write was held up, but its row does.
TEST_F(PositionMemoryTest, WhatIsWrittenOnceAnotherHasWrittenIsComparedToo) {
  log_ = NewLog();
  memory_.OnAssignment(1);
  memory_.Learn(kKey, PositionAnchors::Parse("3:9:9"));
  PositionRow row{.done = PositionRanges::Parse("{[0,4),[6,21)}").value(),
                  .anchors = PositionAnchors::Parse("20:1:1 3:1:1")};
  PositionPart former = Part(5, 6);
  former.oldest = former.newest = LogSample{.offset = 5, .timestamp = 9, .content = 9};
  former.epoch = 1;
  const auto same = memory_.OnCommitted(former, row);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
}

// The part's own anchors leave no place for it among those that are stored.
TEST_F(PositionMemoryTest, WhatAnotherHasWrittenIsComparedThoughOwnAnchorsTakeItsPlace) {
  log_ = NewLog();
  memory_.OnAssignment(2);
  memory_.Learn(kKey, PositionAnchors::Parse("20:1:1 3:1:1"));
  PositionPart part = Written(22, 25);
  part.epoch = 1;
  const auto same = memory_.OnCommitted(part, RowWithFormer());
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
  EXPECT_THAT(asked_, ElementsAre(24, 22, 20, 5, 3));
}

// Other partitions' writes do not wait for the broker; this one's next write does.
TEST_F(PositionMemoryTest, WhatCannotBeComparedYetIsComparedBeforeTheNextWrite) {
  log_ = NewLog();
  memory_.OnAssignment(1);
  memory_.Learn(kKey, PositionAnchors::Parse("20:1:1 3:1:1"));
  away_ = true;
  PositionRow row = RowWithFormer();
  EXPECT_TRUE(memory_.OnCommitted(Written(22, 25), row));
  row.anchors = PositionAnchors::Parse("24:1:1 20:1:1 3:1:1");  // as they are stored by then
  row.done.Add(22, 25);
  const auto write = [&] {
    return memory_.BeforeWrite({Written(25, 30)}, [&](const std::vector<PositionPart>& /*parts*/) {
      return PositionMemory::Rows{row};
    });
  };
  const auto waits = write();
  ASSERT_FALSE(waits);
  EXPECT_FALSE(waits.error().fatal);
  away_ = false;
  const auto same = write();
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().error.code, "topic_replaced");
  log_->records[5] = {.offset = 5, .timestamp = 9, .content = 9};
  EXPECT_TRUE(write());
  EXPECT_TRUE(write());
  EXPECT_EQ(reads_, 4);
}

// Of three partitions: 2, 3, whose log nobody reads, and 4.
TEST_F(PositionMemoryTest, APartitionWhoseLogCannotBeReadHoldsUpNoOther) {
  log_ = LogState{.end = 20, .records = {{.offset = 8, .timestamp = 1, .content = 1}}};
  unread_ = kKey.where;
  const auto of = [](std::int32_t partition) {
    PositionPart part = Written(8, 12);
    part.key.where.partition = partition;
    return part;
  };
  const std::vector<PositionPart> parts{of(2), of(3), of(4)};
  const PositionMemory::Rows rows(3, Row("{[0,9)}"));
  memory_.OnAssignment(1);
  const auto before = memory_.BeforeWrite(parts, [&](const auto&) { return rows; });
  ASSERT_FALSE(before);
  EXPECT_THAT(before.error().later, ElementsAre(1));
  EXPECT_FALSE(before.error().unanswered);
  EXPECT_TRUE(memory_.BeforeWrite({parts[0], parts[2]}, [&](const auto&) { return rows; }));
  const auto after = memory_.OnCommitted(parts, rows);
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().later, ElementsAre(1));
  EXPECT_TRUE(after.error().unanswered) << "it is committed, and may be of another log";
  const auto found =
      memory_.Answer(ByPartition({"C/orders/3/8", "C/orders/2/8", "no position", "C/orders/3/7"}),
                     {Row("{[0,9)}"), Row("{[0,9)}")});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().later, ElementsAre(0, 3));
  log_->records.front().timestamp = 2;
  memory_.OnAssignment(2);
  const auto other = memory_.BeforeWrite(parts, [&](const auto&) { return rows; });
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().fatal) << "whatever cannot be read";
}

TEST_F(PositionMemoryTest, AWriteOfAFormerAssignmentIsNotTheFirstOfThisOne) {
  log_ = NewLog();
  memory_.OnAssignment(2);
  PositionRow row = Row("{[0,9)}");
  PositionPart part = Written(9, 12);
  const auto write = [&] {
    return memory_.BeforeWrite({part}, [&](const std::vector<PositionPart>& /*parts*/) {
      return PositionMemory::Rows{row};
    });
  };
  for (const AssignmentEpoch epoch : {1, 2, 2}) {
    part.epoch = epoch;
    EXPECT_TRUE(write());
  }
  EXPECT_EQ(reads_, 2) << "the former's, and the first of this one";
}

TEST_F(PositionMemoryTest, WhatWasAcknowledgedAndIsNotDoneIsLostFromItsLowestOffsetOn) {
  EXPECT_EQ(BackTo({}), "");
  memory_.Acknowledge(Part(10, 15), 0);
  memory_.Acknowledge(Part(15, 20), 0);
  EXPECT_THAT(memory_.Acknowledged(),
              ElementsAre(::testing::Field(&PositionPart::ranges, Part(10, 20).ranges)));
  EXPECT_EQ(BackTo({Row("{[0,20)}")}), "");
  EXPECT_EQ(BackTo({Row("{[0,12),[15,30)}")}), "3 from 12");
  EXPECT_EQ(BackTo({std::nullopt}), "10 from 10");
}

TEST_F(PositionMemoryTest, WhatAPersonTookBackIsNotLostAndWhatIsDoneAfterwardsMayBe) {
  memory_.Acknowledge(Part(10, 15), 0);
  EXPECT_EQ(BackTo({Row("{[10,12)}", 1)}), "");
  memory_.Acknowledge(Part(15, 16), 1);
  EXPECT_EQ(BackTo({Row("{[10,12)}", 1)}), "1 from 15");
  memory_.Forget();
  EXPECT_TRUE(memory_.Acknowledged().empty());
}

}  // namespace
}  // namespace fencepost::consumer
