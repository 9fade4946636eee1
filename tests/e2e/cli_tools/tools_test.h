// What the tests of explain, dlq and forget share: a pipeline with dead letters over real servers,
// the program run on its file, dead letters and locks planted by hand.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {

class ToolsTest : public PipelineTest {
 protected:
  // A pipeline over topics of its own: name_ (with `partitions`) and name_.dead (with one).
  PipelineText ToolsText(int partitions = 1, const std::string& more = "") {
    PipelineText text = Text(partitions);
    dead_ = name_ + ".dead";
    Kafka().CreateTopic(dead_, 1);
    text.more = fmt::format("dead_letter: {{topic: {}}}\n{}", dead_, more);
    Use(text);
    return text;
  }
  // The file that Tool names from now on.
  void Use(const std::string& yaml) { file_ = folder_.Write("tool.yaml", yaml); }
  void Use(const PipelineText& text) { Use(text.Yaml()); }

  // `fencepost WORD… FILE more…`.
  Finished Tool(std::vector<std::string> words, const std::vector<std::string>& more = {}) const {
    words.push_back(file_);
    words.insert(words.end(), more.begin(), more.end());
    return RunFencepost(std::move(words));
  }

  // Until every record is committed; then the worker ends.
  void RunWorker() {
    WorkerProcess worker({.files = {file_}, .name = "worker-1"});
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    ASSERT_EQ(worker.Stop(), 0) << worker.Log();
  }

  struct Letter {
    std::string id;  // empty: it had none
    std::string value = R"({"order_id":"o-1","amount":1})";
    std::string error_class = "404";
    std::string topic{};     // empty: name_
    std::string pipeline{};  // empty: name_
    int offset = 0;
    std::string failed_at = "2026-11-03T10:00:00.000Z";
  };
  [[nodiscard]] TestRecord Dead(const Letter& letter) const {
    TestRecord record;
    record.topic = dead_;
    record.key = "customer-1";
    record.value = letter.value;
    record.timestamp_ms = 1793690000000;
    record.headers = {{"source", "shop"},
                      {"fencepost-error", "HTTP 404 from the service"},
                      {"fencepost-error-class", letter.error_class},
                      {"fencepost-pipeline", letter.pipeline.empty() ? name_ : letter.pipeline},
                      {"fencepost-topic", letter.topic.empty() ? name_ : letter.topic},
                      {"fencepost-partition", "0"},
                      {"fencepost-offset", std::to_string(letter.offset)},
                      {"fencepost-attempts", "5"},
                      {"fencepost-failed-at", letter.failed_at}};
    if (!letter.id.empty()) record.headers.emplace_back("fencepost-record-id", letter.id);
    return record;
  }
  void Bury(const std::vector<Letter>& letters) const {
    TestProducer producer(Kafka().bootstrap());
    for (const Letter& letter : letters) producer.Send(Dead(letter));
    producer.Flush();
  }
  [[nodiscard]] std::vector<TestRecord> Records() const {
    return ReadTopic(Kafka().bootstrap(), name_);
  }

  // On each of the first `nodes` lock nodes: held by a worker that is not there, until `rest` from
  // now.
  static constexpr std::uint64_t kHeldToken = 88'000'000'000'000'000;
  void PlantHeld(const std::string& id, std::chrono::milliseconds rest,
                 std::size_t nodes = 5) const {
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const std::string value = fmt::format("H{:011x}{:016x}{}", (now + rest).count(), kHeldToken,
                                          std::string(16, '7'));  // locking/redis/wire.h
    for (std::size_t node = 0; node < nodes; ++node) {
      ASSERT_EQ(Nodes()[node].Command({"SET", Key(id), value, "PX", "600000"}), "OK");
    }
  }
  // On each lock node: DONE, as a pipeline without a ledger leaves it.
  void PlantDone(const std::string& id) const {
    const std::string value = fmt::format("D{:016x}{:016x}", kHeldToken, 0);
    for (std::size_t node = 0; node < 5; ++node) {
      ASSERT_EQ(Nodes()[node].Command({"SET", Key(id), value, "PX", "600000"}), "OK");
    }
  }
  [[nodiscard]] std::string Key(const std::string& id) const {
    return fmt::format("fencepost:{{{}}}:{}", name_, id);
  }
  [[nodiscard]] int LedgerRows() const {
    return std::stoi(table_->Value("SELECT count(*) FROM fencepost_ledger"));
  }

  std::string dead_;
  std::string file_;
};

}  // namespace fencepost::testing
