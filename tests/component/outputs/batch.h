// Records to write, by hand.
#pragma once

#include <deque>
#include <future>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "consumer/outputs/output.h"
#include "consumer/outputs/write_retry.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

class Batch {
 public:
  // Stands for {"order_id": ID, "amount": OFFSET}.
  static constexpr const char* kOrder = "an order";

  struct Entry {
    std::string id;
    Offset offset = 0;
    std::uint64_t token = 1;
    std::uint32_t crc = 1;
    std::string value{kOrder};
    std::optional<std::string> key{};
    bool tombstone = false;                 // no value
    std::optional<HandlerValues> values{};  // what a handler made of it
    std::vector<std::pair<std::string, std::optional<std::string>>> headers{};
    std::uint64_t chain = 0;
    std::int32_t partition = 3;
    Offset gap = 0;
    AssignmentEpoch epoch = 1;
    bool letter = false;  // it is a dead letter
  };

  Batch() = default;
  Batch(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) Add(entry);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Add(Entry entry) {
    if (entry.value == kOrder) {
      entry.value = fmt::format(R"({{"order_id":"{}","amount":{}}})", entry.id, entry.offset);
    }
    const Entry& kept = entries_.emplace_back(std::move(entry));
    Record& record = records_.emplace_back();
    record.offset = kept.offset;
    record.gap = kept.gap;
    record.epoch = kept.epoch;
    record.timestamp = std::chrono::milliseconds(1'700'000'000'123);
    if (!kept.tombstone) record.value = kept.value;
    if (kept.key) record.key = *kept.key;
    for (const auto& [name, value] : kept.headers) {
      record.headers.push_back(
          {.name = name, .value = value ? std::optional<std::string_view>(*value) : std::nullopt});
    }
    items_.push_back({.record = &record,
                      .where = &places_.emplace_back(TopicPartition{"orders", kept.partition}),
                      .cluster = "C",
                      .record_id = kept.id,
                      .token = locking::Token(kept.token),
                      .crc = kept.crc,
                      .values = kept.values ? &*kept.values : nullptr,
                      .dead_letter = kept.letter ? &letter_ : nullptr,
                      .chain = kept.chain});
  }
  // `count` records PREFIX0000 and on, with offsets from `first`.
  void AddMany(const std::string& prefix, int count, Offset first = 0) {
    for (int i = 0; i < count; ++i) {
      Add({.id = fmt::format("{}{:04}", prefix, i), .offset = first + i});
    }
  }
  [[nodiscard]] const std::vector<WriteItem>& items() const { return items_; }

 private:
  std::deque<TopicPartition> places_;
  std::deque<Entry> entries_;
  std::deque<Record> records_;
  std::vector<WriteItem> items_;
  const DeadLetter letter_{};
};

inline std::vector<Column> Columns(
    std::initializer_list<std::pair<const char*, const char*>> columns) {
  std::vector<Column> parsed;
  for (const auto& [name, selector] : columns) {
    parsed.push_back({.name = name, .selector = Selector::Parse(selector).value()});
  }
  return parsed;
}

inline std::vector<Column> OrderColumns() {
  return Columns({{"order_id", "json:/order_id"}, {"amount", "json:/amount"}});
}

// As the Writer does, in as many transactions as it takes; an output that is away is an error.
inline tl::expected<std::vector<WriteOutcome>, OutputError> WriteAll(Output& output,
                                                                     const Batch& batch) {
  WriteRetry retry(output.max_records());
  return WriteAtOnce(output, retry, {.items = batch.items(), .offsets = {}});
}

// In one transaction.
using Written = tl::expected<std::vector<WriteOutcome>, OutputError>;
inline Written WriteOnce(Output& output, const Batch& batch) {
  return output.Write({.items = batch.items(), .offsets = {}});
}
inline std::future<Written> WriteAside(Output& output, const Batch& batch) {
  return std::async(std::launch::async, [&] { return WriteOnce(output, batch); });
}
// The error of a transaction that must fail.
inline OutputError Failure(const Written& written) {
  EXPECT_FALSE(written);
  return written ? OutputError{} : written.error();
}
inline OutputError Failure(Output& output, const Batch& batch) {
  return Failure(WriteOnce(output, batch));
}
// "fatal: LINE" or "LINE" of the write that must fail; "" when it succeeds.
inline std::string Trouble(Output& output, const Batch& batch) {
  const auto written = WriteAll(output, batch);
  if (written) return "";
  return (written.error().fatal ? "fatal: " : "") + written.error().error.Line();
}
// Why it cannot be prepared; "": it can.
inline std::string Refusal(Output& output) {
  const auto prepared = output.Prepare();
  return prepared ? "" : prepared.error().error.Line();
}

// The results of a write that must succeed.
inline std::vector<WriteResult> Results(Output& output, const Batch& batch) {
  const auto outcomes = WriteAll(output, batch);
  if (!outcomes) {
    ADD_FAILURE() << outcomes.error().error.Line();
    return {};
  }
  std::vector<WriteResult> results;
  for (const WriteOutcome& outcome : *outcomes) results.push_back(outcome.result);
  return results;
}

// The detail of a record that must be bad, and is alone in its batch; else the result's number.
inline std::string WhyBad(Output& output, const Batch& batch) {
  const auto outcomes = WriteAll(output, batch);
  if (!outcomes) return outcomes.error().error.Line();
  const WriteOutcome& outcome = outcomes->at(0);
  if (outcome.result == WriteResult::kBadRecord) return outcome.detail;
  return fmt::format("result {}", static_cast<int>(outcome.result));
}

inline std::future<std::vector<WriteResult>> ResultsAside(Output& output, const Batch& batch) {
  return std::async(std::launch::async, [&] { return Results(output, batch); });
}

inline std::vector<WriteResult> All(std::size_t count, WriteResult result) {
  return std::vector<WriteResult>(count, result);
}

}  // namespace fencepost::consumer
