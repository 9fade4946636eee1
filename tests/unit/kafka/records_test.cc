// What a record costs, what a dead letter is made of, and whom a refusal is about.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/output/dead_letter_record.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {
namespace {

TEST(Record, CountsItsHeadersToo) {
  const std::string megabyte(1 << 20, 'h');
  Record record;
  EXPECT_EQ(record.Bytes(), 64u);
  record.key = "key";
  record.value = "value";
  EXPECT_EQ(record.Bytes(), 72u);
  record.headers = {{"name", megabyte}, {"none", std::nullopt}};
  EXPECT_EQ(record.Bytes(), 72u + 4 + megabyte.size() + 4 + 2 * sizeof(HeaderView));
}

DeadLetter Letter(std::string error) {
  DeadLetter letter;
  letter.where = {"orders", 3};
  letter.error = std::move(error);
  return letter;
}

std::string ErrorHeader(const DeadLetter& letter, std::size_t max_error) {
  return AddedHeaders(letter, "p", {.max_error = max_error}).front().second;
}

TEST(DeadLetterHeaders, HoldNoMoreThanAThousandBytesOfTheError) {
  const DeadLetter letter = Letter(std::string(600'000, 'x') + "\n");
  EXPECT_EQ(ErrorHeader(letter, kMaxErrorHeader), std::string(997, 'x') + "...");
  EXPECT_EQ(ErrorHeader(letter, 0), "");
}

TEST(DeadLetterHeaders, HoldTheErrorAsOneLineOfWholeCharacters) {
  EXPECT_EQ(ErrorHeader(Letter("no\n\tinteger: \xff"), kMaxErrorHeader), "no integer: ?");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\u20ac";  // three bytes each
  const std::string cut = ErrorHeader(Letter(text), kMaxErrorHeader);
  EXPECT_EQ(cut.size(), 996u + 3) << "332 whole characters, and the mark of the cut";
  EXPECT_TRUE(text.starts_with(cut.substr(0, 996)));
}

TEST(DeadLetterForms, LeaveOutWhatTheTopicRefusesAndNothingElse) {
  struct Row {
    std::size_t error, kept;
    bool timed;
    Blame blame;
    const char* next;
  };
  using enum Blame;
  for (const Row& row :
       {Row{201, kMaxErrorHeader, true, kItsSize, "200 timed"},
        Row{201, 200, true, kItsSize, "0 timed"},
        Row{5, kMaxErrorHeader, true, kItsSize, "0 timed"}, Row{5, 0, true, kItsSize, "none"},
        Row{0, kMaxErrorHeader, true, kItsSize, "none"}, Row{201, 200, true, kItsTime, "200"},
        Row{201, 200, false, kItsTime, "none"}, Row{201, 200, false, kItsSize, "0"},
        Row{201, kMaxErrorHeader, true, kItsContent, "none"},
        Row{201, kMaxErrorHeader, true, kNoRecord, "none"}}) {
    const auto next = NextForm(Letter(std::string(row.error, 'x')),
                               {.max_error = row.kept, .timed = row.timed}, row.blame);
    const std::string text =
        next ? fmt::format("{}{}", next->max_error, next->timed ? " timed" : "") : "none";
    EXPECT_EQ(text, row.next) << row.error << " " << row.kept << " " << row.timed;
  }
}

// The time that is sent, and what the header says.
std::string Times(const DeadLetter& letter, bool timed) {
  const DeadLetterRecord record("dead", letter, "p", {.timed = timed});
  std::string text = "now";
  if (record.outgoing().timestamp) text = std::to_string(record.outgoing().timestamp->count());
  for (const HeaderView& header : record.outgoing().headers) {
    if (header.name == "fencepost-timestamp") text += " " + std::string(*header.value);
  }
  return text;
}

TEST(DeadLetterForms, WithoutItsTimeALetterHasItInAHeader) {
  DeadLetter letter = Letter("");
  EXPECT_EQ(Times(letter, true), "now");
  EXPECT_EQ(Times(letter, false), "now") << "it has none";
  letter.record.timestamp = std::chrono::milliseconds(5000);
  EXPECT_EQ(Times(letter, true), "5000");
  EXPECT_EQ(Times(letter, false), "now 5000");
  letter.origin = ReplayOrigin{.timestamp = std::chrono::milliseconds(3000)};
  EXPECT_EQ(Times(letter, true), "5000 3000") << "a replay's letter has the original's";
  EXPECT_EQ(Times(letter, false), "now 3000");
  letter.origin.reset();
  letter.record.timestamp = std::chrono::milliseconds(0);
  EXPECT_EQ(Times(letter, true), "now 0") << "librdkafka sends 0 as now";
}

struct LetterItem {
  explicit LetterItem(Offset offset, std::int64_t time) : letter(Letter(std::string(500, 'x'))) {
    letter.record.offset = offset;
    letter.record.timestamp = std::chrono::milliseconds(time);
    item = {.record = &letter.record, .where = &letter.where, .dead_letter = &letter};
  }
  LetterItem(const LetterItem&) = delete;
  LetterItem& operator=(const LetterItem&) = delete;

  DeadLetter letter;
  WriteItem item;
};

TEST(HeldLetters, HaveEachItsOwnFormInOnePartition) {
  const LetterItem a(1, 1), b(2, 1);
  HeldLetters held;
  EXPECT_TRUE(held.TryNextForm(a.item, Blame::kItsSize));
  EXPECT_TRUE(held.TryNextForm(b.item, Blame::kItsSize));
  EXPECT_TRUE(held.TryNextForm(b.item, Blame::kItsSize));
  EXPECT_EQ(held.FormOf(a.item).max_error, 200u);
  EXPECT_EQ(held.FormOf(b.item).max_error, 0u);
  held.Published(b.item);
  EXPECT_EQ(held.FormOf(a.item).max_error, 200u);
  EXPECT_EQ(held.FormOf(b.item).max_error, kMaxErrorHeader);
}

TEST(HeldLetters, OfTimesThatWereRefusedBeforeGoWithoutThem) {
  constexpr std::int64_t kAhead = 4'000'000'000'000;
  const LetterItem old(1, 2000), older(2, 1999), younger(3, 2001);
  const LetterItem ahead(4, kAhead), further(5, kAhead + 1), nearer(6, kAhead - 1);
  HeldLetters held;
  const auto timed = [&](const LetterItem& one) { return held.FormOf(one.item).timed; };
  EXPECT_TRUE(timed(old));
  EXPECT_TRUE(held.TryNextForm(old.item, Blame::kItsTime));
  EXPECT_FALSE(held.TryNextForm(old.item, Blame::kItsTime)) << "now is refused as well";
  for (const LetterItem* one : {&old, &older}) EXPECT_FALSE(timed(*one));
  for (const LetterItem* one : {&younger, &ahead}) EXPECT_TRUE(timed(*one));
  EXPECT_TRUE(held.TryNextForm(ahead.item, Blame::kItsTime));
  for (const LetterItem* one : {&ahead, &further}) EXPECT_FALSE(timed(*one));
  for (const LetterItem* one : {&younger, &nearer}) EXPECT_TRUE(timed(*one));
}

TEST(HeldLetters, HoldTheirPartitionAtTheFirstAndSayWhatItNeeds) {
  const LetterItem a(1, 1), b(7, 1);
  const auto now = HeldLetters::Clock::now();
  HeldLetters held;
  held.Begin(1);
  EXPECT_EQ(held.StopAt({"orders", 3}, now), std::nullopt);
  held.Hold(b.item, now, "that");
  held.Hold(a.item, now, "this");
  EXPECT_EQ(held.StopAt({"orders", 3}, now), 1);
  EXPECT_EQ(held.StopAt({"orders", 2}, now), std::nullopt);
  EXPECT_EQ(held.StopAt({"orders", 4}, now), std::nullopt);
  EXPECT_EQ(held.Reason(), "orders/3/1 waits: this");
  held.Published(a.item);
  EXPECT_EQ(held.StopAt({"orders", 3}, now), 7);
  held.Committed();
  held.Begin(1);
  EXPECT_EQ(held.StopAt({"orders", 3}, now + std::chrono::seconds(1)), std::nullopt) << "a try";
  EXPECT_EQ(held.Reason(), "orders/3/7 waits: that");
  held.Begin(2);
  EXPECT_EQ(held.Reason(), "") << "another assignment";
}

TEST(Producing, KnowsWhomAnErrorIsAbout) {
  struct Row {
    rd_kafka_resp_err_t error;
    Blame blame;
    const char* hint;
  };
  using enum Blame;
  for (const Row& row : {
           Row{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, kItsSize, "max.message.bytes"},
           Row{RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, kItsContent, ""},
           Row{RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, kItsContent, ""},
           Row{RD_KAFKA_RESP_ERR_INVALID_RECORD, kItsContent, ""},
           Row{RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, kItsTime, ""},
           // The topic's, the brokers', a right's: any record would have it.
           Row{RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, kNoRecord, "create the topic"},
           Row{RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, kNoRecord, "grant WRITE"},
           Row{RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, kNoRecord, "IDEMPOTENT_WRITE"},
           Row{RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, kNoRecord, "min.insync.replicas"},
           Row{RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, kNoRecord,
               "min.insync.replicas"},
           Row{RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, kNoRecord,
               "message.format.version"},
           Row{RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, kNoRecord, "compression.type"},
           Row{RD_KAFKA_RESP_ERR_POLICY_VIOLATION, kNoRecord, ""},
           Row{RD_KAFKA_RESP_ERR_INVALID_MSG, kNoRecord, ""},
           Row{RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, kNoRecord, ""},
           Row{RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, kNoRecord, ""},
           Row{RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, kNoRecord, ""},
           Row{RD_KAFKA_RESP_ERR_UNKNOWN, kNoRecord, ""},
           Row{RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, kNoRecord, "brokers are up"},
       }) {
    EXPECT_EQ(BlameOf(row.error), row.blame) << rd_kafka_err2name(row.error);
    const std::string_view hint = WhatToDoAbout(row.error);
    EXPECT_TRUE(*row.hint == 0 ? hint.empty() : hint.find(row.hint) != hint.npos)
        << rd_kafka_err2name(row.error) << ": " << hint;
  }
  for (int code = RD_KAFKA_RESP_ERR__BEGIN; code < 0; ++code) {  // which 2.0.2 has not
    const auto error = static_cast<rd_kafka_resp_err_t>(code);
    const bool other = rd_kafka_err2name(error) == std::string("_INVALID_DIFFERENT_RECORD");
    EXPECT_EQ(BlameOf(error), other ? kItsContent : kNoRecord) << code;
  }
}

}  // namespace
}  // namespace fencepost::consumer
