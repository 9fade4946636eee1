// Shows each record as it ends, a line each on standard output: where it was, its id, and what was
// written, as the pipeline's file says it (JSON). Of thousands a second only some are shown, and
// how many more there were.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "consumer/flow/ports/ports.h"
#include "consumer/kafka/output/output_records.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"

namespace fencepost::cli {

class EffectLog {
 public:
  static constexpr int kLinesPerSecond = 100;

  // `file`: what the pipeline's file says.
  explicit EffectLog(const consumer::PipelineOptions& file);

  // As the observer's OnProcessed: on one thread.
  void OnProcessed(consumer::ProcessedResult result, const consumer::WriteItem& item, bool lost);
  // About once a second, any thread: tells how many were not shown.
  void Tick();

  // Any thread.
  [[nodiscard]] std::uint64_t Count(consumer::ProcessedResult result) const {  // none that lost
    return counts_[static_cast<std::size_t>(result)];
  }
  [[nodiscard]] std::uint64_t Finished() const;
  // "4 records: 2 took effect, 1 was done before, 1 lost to a newer row".
  [[nodiscard]] std::string Summary() const;

  // The line; nothing of it is printed.
  [[nodiscard]] std::string LineOf(consumer::ProcessedResult result,
                                   const consumer::WriteItem& item, bool lost);

 private:
  // By ProcessedResult; then those of kDone and of kSkipped that lost.
  using Counts = std::array<std::atomic<std::uint64_t>, 8>;

  // More than one table or topic.
  [[nodiscard]] bool Several() const;
  [[nodiscard]] std::string Records(const consumer::WriteItem& item);
  [[nodiscard]] std::string Rows(const consumer::WriteItem& item);
  [[nodiscard]] std::string Row(const consumer::TableRows& rows, std::size_t row) const;

  const std::string target_, dead_letter_topic_;
  const bool by_position_;
  consumer::BatchRows rows_;
  consumer::KafkaOutputOptions kafka_;
  std::optional<consumer::OutputRecords> records_;  // of output.kafka, in the place of rows
  Counts counts_{};
  std::mutex mutex_;  // guards what follows
  int lines_ = 0;     // since the last Tick
  std::uint64_t not_shown_ = 0;
};

}  // namespace fencepost::cli
