// A KafkaSource with its sink. What is waited for comes within half a minute, else the test says
// what there was.
#pragma once

#include <string>
#include <utility>

#include "consumer/kafka/source/source.h"
#include "tests/unit/kafka/recording_sink.h"

namespace fencepost::consumer::testing {

class Reader : public RecordingSink {
 public:
  explicit Reader(KafkaOptions options, const std::string& worker = "w", SourceExtras extras = {})
      : source(std::move(options), worker, this, this, std::move(extras)) {}

  // Once: it is begun by what is waited for first.
  [[nodiscard]] ::testing::AssertionResult Start() {
    if (std::exchange(started_, true)) return ::testing::AssertionSuccess();
    const auto begun = source.Start();
    return begun ? ::testing::AssertionSuccess()
                 : ::testing::AssertionFailure() << begun.error().Line();
  }
  template <typename Condition>
  [[nodiscard]] ::testing::AssertionResult Until(Condition&& condition) {
    if (auto begun = Start(); !begun) return begun;
    auto came = WaitUntil(60s, [&] { return Locked([&] { return condition(); }); });
    return came ? came : came << "\n" << Trace();
  }
  [[nodiscard]] ::testing::AssertionResult Reads(std::size_t records) {
    return Until([&] { return CountNow() == records; });
  }
  [[nodiscard]] ::testing::AssertionResult Owns(std::size_t partitions) {
    return Until([&] { return assigned.size() == partitions; });
  }
  [[nodiscard]] ::testing::AssertionResult Fails() {
    return Until([&] { return fatal.has_value(); });
  }
  void End() {
    source.Stop();
    source.Join();
  }

 private:
  bool started_ = false;

 public:
  KafkaSource source;  // last: it ends first
};

}  // namespace fencepost::consumer::testing
