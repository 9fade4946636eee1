// Whether the topics are still the ones that the group has read (log_fingerprint.h).
#include <fmt/format.h>

#include "consumer/kafka/source/source_impl.h"

namespace fencepost::consumer {
namespace {

// Delivery waits this long at most for the comparison. It then begins, and a comparison that ends
// later still stops the worker if the log is another.
constexpr std::chrono::seconds kCompareTimeout{10};

}  // namespace

std::vector<TopicPartition> KafkaSource::Impl::BeginFingerprints() {
  ForgetFingerprints();
  fingerprints = std::make_shared<LogFingerprints>();
  for (const AssignedPartition& one : assigned) BeginFingerprint(one.where);
  std::vector<TopicPartition> apart;
  for (const auto& [where, since] : waiting) apart.push_back(where);
  return apart;
}

void KafkaSource::Impl::BeginFingerprint(const TopicPartition& where) {
  const auto committed = starts->FingerprintOf(where);
  fingerprints->Begin(where, committed);
  if (!committed) return;
  reader->Ask(where, *committed);
  waiting[where] = Clock::now();
}

void KafkaSource::Impl::AskForSamples() {
  if (fingerprints == nullptr) return;
  const auto now = Clock::now();
  for (const AssignedPartition& one : assigned) {
    if (fingerprints->Wants(one.where, now)) intake->Sample(one.partition);
  }
}

void KafkaSource::Impl::OnSamples(const std::vector<SampledFingerprint>& samples) {
  if (fingerprints == nullptr) return;
  for (const SampledFingerprint& one : samples) {
    if (const auto question = fingerprints->Sampled(one.where, one.fingerprint, Clock::now())) {
      reader->Ask(one.where, *question);
    }
  }
}

void KafkaSource::Impl::CheckFingerprints() {
  if (failed || !reader->Asking()) return;
  for (const FingerprintReader::Finding& finding : reader->Poll()) OnFingerprint(finding);
  if (!waiting.empty()) ReleaseUnanswered();
}

void KafkaSource::Impl::OnFingerprint(const FingerprintReader::Finding& finding) {
  if (finding.answer == FingerprintAnswer::kDifferent) {
    Fail(TopicReplaced(options.group, finding.where, finding.asked, *finding.found));
    return;
  }
  if (failed) return;
  if (const auto next = fingerprints->Answered(finding.where, finding.answer, Clock::now())) {
    reader->Ask(finding.where, *next);
    return;
  }
  if (waiting.erase(finding.where) > 0) intake->Release(finding.where);
  AskForSamples();
}

void KafkaSource::Impl::ReleaseUnanswered() {
  const auto now = Clock::now();
  for (auto one = waiting.begin(); one != waiting.end();) {
    if (failed || now < one->second + kCompareTimeout) {
      ++one;
      continue;
    }
    health.Note(locking::Severity::kWarn, "topic_not_compared",
                fmt::format("{}/{} goes on before it is known whether it is still the log that "
                            "the group has read: no broker answers yet",
                            one->first.topic, one->first.partition));
    intake->Release(one->first);
    one = waiting.erase(one);
  }
}

void KafkaSource::Impl::ForgetFingerprints() {
  fingerprints.reset();
  waiting.clear();
  reader->Forget();
}

}  // namespace fencepost::consumer
