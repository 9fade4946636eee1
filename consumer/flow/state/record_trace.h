// What a record went through, and when, where there are traces: its stages, and what was told of
// it. Kept for every record, since which one will be slow or fail is not known before; spans are
// made of it at its end (tracer.h). A value; the engine thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/flow/state/stage.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

// One of the 2^64 ids that follow from `seed`, and not 0 (splitmix64, Steele et al. 2014).
constexpr std::uint64_t DerivedId(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t bits = seed + (number + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  return bits == 0 ? 1 : bits;
}

class RecordTrace {
 public:
  // A record that is tried for hours keeps its beginning and its end.
  static constexpr std::size_t kMostSteps = 128;
  static constexpr std::size_t kMostEvents = 32;
  static constexpr std::uint32_t kCommitNumber = 0xffffffff;  // Step::number of its commit

  struct Step {
    Stage stage = Stage::kUnused;
    std::uint32_t number = 0;    // since the record was delivered
    locking::Instant from;       // until the next one's
    TraceContext transaction{};  // kWriting: whose span it has a part in
    std::string error{};         // without anything of the record; empty: it did not fail
  };
  struct Event {
    locking::Instant at;
    std::string name;
    std::string text;
  };

  // `clock`: the time of the flow's current input; it outlives this.
  explicit RecordTrace(const locking::Instant* clock) : clock_(clock) {}

  void Begin(TraceContext context, std::uint64_t parent) {
    context_ = context;
    parent_ = parent;
    kept_ = context.sampled;
    number_ = 0;
    steps_.clear();
    events_.clear();
  }
  // No span is made of it any more.
  void End() { context_ = {}; }

  void OnStage(Stage stage) {
    if (!context_.there()) return;
    if (steps_.size() == kMostSteps) {
      steps_.erase(steps_.begin() + kMostSteps / 4, steps_.begin() + kMostSteps / 2);
    }
    steps_.push_back({.stage = stage, .number = number_++, .from = *clock_});
  }
  void OnTransaction(const TraceContext& transaction) {
    if (!steps_.empty()) steps_.back().transaction = transaction;
  }
  // The step that it is at has failed: `error` as Step's, not empty.
  void Fail(std::string error) {
    kept_ = true;
    if (!steps_.empty()) steps_.back().error = std::move(error);
  }
  // The trace is kept for it. `text`: without anything of the record.
  void Tell(std::string_view name, std::string_view text) {
    kept_ = true;
    if (events_.size() < kMostEvents) {
      events_.push_back({.at = *clock_, .name = std::string(name), .text = std::string(text)});
    }
  }

  [[nodiscard]] const TraceContext& context() const { return context_; }  // none: there is no trace
  [[nodiscard]] std::uint64_t parent() const { return parent_; }
  [[nodiscard]] bool kept() const { return kept_; }
  [[nodiscard]] std::uint32_t left_out() const {
    return number_ - static_cast<std::uint32_t>(steps_.size());
  }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  // Of the step's span.
  [[nodiscard]] TraceContext Of(const Step& step) const {
    return context_.WithSpan(DerivedId(context_.span, step.number));
  }
  [[nodiscard]] TraceContext OfNow() const { return steps_.empty() ? context_ : Of(steps_.back()); }

 private:
  const locking::Instant* clock_;
  TraceContext context_;
  std::uint64_t parent_ = 0;
  bool kept_ = false;
  std::uint32_t number_ = 0;  // of the next step
  std::vector<Step> steps_;
  std::vector<Event> events_;
};

}  // namespace fencepost::consumer
