// What a record went through, and when, where there are traces: its stages, and what was told of
// it. Kept for every record, since which one will be slow or fail is not known before; spans are
// made of it at its end (tracer.h). A value; the engine thread's.
#pragma once

#include <algorithm>
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

// Somebody else has the record: a lock node, the database, the handler, Kafka. What waits in
// between waits for other records.
constexpr bool InOthersHands(Stage stage) {
  return stage == Stage::kLocking || stage == Stage::kLookup || stage == Stage::kHandling ||
         stage == Stage::kWriting || stage == Stage::kPublishingDeadLetter;
}

class RecordTrace {
 public:
  // Of more, those in the middle are left out.
  static constexpr std::size_t kMostSteps = 128;
  static constexpr std::size_t kMostEvents = 32;
  static constexpr std::uint32_t kCommitNumber = 0xffffffff;  // Step::number of its commit
  // So much room is kept for the next record in its place.
  static constexpr std::size_t kKeptSteps = 16;

  struct Step {
    Stage stage = Stage::kUnused;
    std::uint32_t number = 0;  // since the record was delivered
    locking::Instant from;
    locking::Instant to = locking::Instant::max();  // max: it goes on
  };
  // What is known of few steps.
  struct Mark {
    std::uint32_t number = 0;    // of the step
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
    open_ = true;
    kept_ = context.sampled;
    number_ = events_left_out_ = 0;
    busy_ = {};
    steps_.clear();
    marks_.clear();
    events_.clear();
  }
  // No span is made of it any more; its ids stay, for the log.
  void End() { open_ = false; }
  // It has grown: it is no memory to keep for the next record.
  [[nodiscard]] bool Large() const {
    return steps_.capacity() > kKeptSteps || events_.capacity() > 0;
  }

  void OnStage(Stage stage) {
    if (!open_) return;
    if (!steps_.empty()) {
      steps_.back().to = *clock_;
      if (InOthersHands(steps_.back().stage)) busy_ += *clock_ - steps_.back().from;
    }
    if (steps_.size() == kMostSteps) {
      steps_.erase(steps_.begin() + kMostSteps / 4, steps_.begin() + kMostSteps / 2);
    }
    steps_.push_back({.stage = stage, .number = number_++, .from = *clock_});
  }
  void OnTransaction(const TraceContext& transaction) { MarkOfNow().transaction = transaction; }
  // The step that it is at has failed: `error` as Mark's, not empty. `keeps`: the trace is kept for
  // it.
  void Fail(std::string error, bool keeps = true) {
    kept_ = kept_ || keeps;
    MarkOfNow().error = std::move(error);
  }
  // The trace is kept for it. `text`: without anything of the record.
  void Tell(std::string_view name, std::string_view text) {
    if (!open_) return;
    kept_ = true;
    if (events_.size() == kMostEvents) {
      events_.erase(events_.begin() + kMostEvents / 2);
      ++events_left_out_;
    }
    events_.push_back({.at = *clock_, .name = std::string(name), .text = std::string(text)});
  }

  [[nodiscard]] const TraceContext& context() const { return context_; }
  [[nodiscard]] std::uint64_t parent() const { return parent_; }
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] bool kept() const { return kept_; }
  // How long others had it in their hands, up to now.
  [[nodiscard]] locking::Nanos Busy(locking::Instant now) const {
    if (steps_.empty() || !InOthersHands(steps_.back().stage)) return busy_;
    return busy_ + (now - steps_.back().from);
  }
  [[nodiscard]] std::uint32_t steps_left_out() const {
    return number_ - static_cast<std::uint32_t>(steps_.size());
  }
  [[nodiscard]] std::uint32_t events_left_out() const { return events_left_out_; }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] const Mark* MarkOf(const Step& step) const {
    const auto mark = std::ranges::find(marks_, step.number, &Mark::number);
    return mark == marks_.end() ? nullptr : &*mark;
  }
  // Of the step's span.
  [[nodiscard]] TraceContext Of(const Step& step) const {
    return context_.WithSpan(DerivedId(context_.span, step.number));
  }
  [[nodiscard]] TraceContext OfNow() const { return steps_.empty() ? context_ : Of(steps_.back()); }

 private:
  // Of the step that it is at: one that counts, while there is room for it.
  Mark& MarkOfNow() {
    if (!open_ || steps_.empty()) return unused_ = {};
    const std::uint32_t now = steps_.back().number;
    if (!marks_.empty() && marks_.back().number == now) return marks_.back();
    if (marks_.size() == kMostSteps) marks_.erase(marks_.begin() + kMostSteps / 4);
    return marks_.emplace_back(Mark{.number = now});
  }

  const locking::Instant* clock_;
  TraceContext context_;
  std::uint64_t parent_ = 0;
  bool open_ = false;
  bool kept_ = false;
  std::uint32_t number_ = 0;  // of the next step
  std::uint32_t events_left_out_ = 0;
  locking::Nanos busy_{0};  // in steps that have ended
  std::vector<Step> steps_;
  std::vector<Mark> marks_;
  std::vector<Event> events_;
  Mark unused_;
};

}  // namespace fencepost::consumer
