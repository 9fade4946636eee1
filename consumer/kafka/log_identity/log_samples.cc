#include "consumer/kafka/log_identity/log_samples.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::consumer {

void LogSamples::Begin(const TopicPartition& where, const std::optional<LogSample>& committed) {
  const std::lock_guard lock(mutex_);
  Chain& chain = chains_[where];
  chain = Chain{};
  if (!committed) return;
  chain.known = {*committed};
  chain.asking = true;
}

bool LogSamples::Wants(const TopicPartition& where, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  return found != chains_.end() && !found->second.asking && now >= found->second.due;
}

// The first record ever: nothing says that the log was another one before, and it is known at once.
std::optional<Offset> LogSamples::Sampled(const TopicPartition& where, const LogSample& read,
                                          Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  if (found == chains_.end() || found->second.asking) return std::nullopt;
  Chain& chain = found->second;
  chain.due = now + kBetween;
  chain.asked_at = read.offset + 1;
  if (chain.known.empty() || Planted("newer_fingerprint_is_believed")) {
    chain.known = {read};
    return std::nullopt;
  }
  chain.candidate = read;
  chain.asking = true;
  return chain.known.back().offset;
}

std::optional<Offset> LogSamples::Unsampled(const TopicPartition& where, Offset next,
                                            Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  if (found == chains_.end() || found->second.asking) return std::nullopt;
  Chain& chain = found->second;
  if (chain.known.empty() || next <= chain.asked_at || now < chain.due + kQuiet)
    return std::nullopt;
  chain.asking = true;
  chain.asked_at = next;
  chain.due = now + kBetween;
  return chain.known.back().offset;
}

LogSamples::Next LogSamples::Answered(const TopicPartition& where, const LogState& log,
                                      Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(where);
  if (found == chains_.end() || !found->second.asking) return {};
  Chain& chain = found->second;
  LogComparison compared = CompareLog({chain.known.back()}, log);
  if (compared.verdict == LogComparison::Verdict::kOther) return {std::move(compared), {}};
  if (compared.verdict == LogComparison::Verdict::kUnknown) {
    chain.known.pop_back();
    if (!chain.known.empty()) return {std::move(compared), chain.known.back().offset};
  }
  chain.asking = false;
  if (chain.candidate) {
    Push(chain, *chain.candidate);
    chain.candidate.reset();
    chain.due = now + kBetween;
  }
  return {std::move(compared), {}};
}

// The oldest stay for offsets that have not moved for long.
void LogSamples::Push(Chain& chain, const LogSample& sample) {
  if (chain.known.size() == kKept) chain.known.pop_back();
  chain.known.push_back(sample);
}

void LogSamples::Hurry() {
  const std::lock_guard lock(mutex_);
  for (auto& [where, chain] : chains_) chain.due = {};
}

std::string LogSamples::TextFor(const TopicPartition& where, Offset next,
                                std::vector<FailedRecord> failed) {
  const std::lock_guard lock(mutex_);
  CommitMetadata metadata;
  if (length_ == Length::kFull) metadata.failed = std::move(failed);
  metadata.pipeline = pipeline_;
  told_failures_ = told_failures_ || !metadata.failed.empty();
  const auto found = chains_.find(where);
  if (found == chains_.end() || length_ == Length::kNone) return MetadataText(metadata, next);
  std::vector<LogSample>& known = found->second.known;
  const auto behind = std::partition_point(
      known.begin(), known.end(), [next](const LogSample& one) { return one.offset < next; });
  if (behind != known.begin()) metadata.sample = *std::prev(behind);
  // The one before it stays: a transaction that is aborted may come again with a lower offset.
  if (behind - known.begin() > 2) known.erase(known.begin(), behind - 2);
  return MetadataText(metadata, next);
}

void LogSamples::Shorten() {
  const std::lock_guard lock(mutex_);
  length_ = std::exchange(told_failures_, false) ? Length::kSample : Length::kNone;
}

}  // namespace fencepost::consumer
