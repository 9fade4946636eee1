// Whether the topics are still the ones that the group has read (log_samples.h).
#include <fmt/format.h>

#include "consumer/kafka/source/source_impl.h"

namespace fencepost::consumer {
namespace {

// Delivery waits this long at most for the comparison, or until an end that was found is believed.
// It then begins, and a comparison that ends later still stops the worker if the log is another.
constexpr std::chrono::seconds kCompareTimeout{10};

}  // namespace

std::vector<TopicPartition> KafkaSource::Impl::BeginSamples() {
  ForgetSamples();
  samples = std::make_shared<LogSamples>(extras.pipeline);
  for (const AssignedPartition& one : assigned) BeginSample(one.where);
  std::vector<TopicPartition> apart;
  for (const auto& [where, since] : waiting) apart.push_back(where);
  return apart;
}

void KafkaSource::Impl::BeginSample(const TopicPartition& where) {
  const auto committed = starts->MetadataOf(where).sample;
  samples->Begin(where, committed);
  if (!committed) return;
  reader->Ask(where, {committed->offset});
  waiting[where] = Clock::now();
}

void KafkaSource::Impl::AskForSamples() {
  if (samples == nullptr) return;
  const auto now = Clock::now();
  for (const AssignedPartition& one : assigned) {
    if (!samples->Wants(one.where, now)) continue;
    intake->Sample(one.partition);
    const auto ask = samples->Unsampled(one.where, intake->NextOf(one.where), now);
    if (ask) reader->Ask(one.where, {*ask});
  }
}

void KafkaSource::Impl::OnSamples(const std::vector<SampledRecord>& sampled) {
  if (samples == nullptr) return;
  for (const SampledRecord& one : sampled) {
    const auto ask = samples->Sampled(one.where, one.sample, Clock::now());
    if (ask) reader->Ask(one.where, {*ask});
  }
}

void KafkaSource::Impl::CheckLogs() {
  if (failed || !reader->Asking()) return;
  for (const LogReader::Answer& answer : reader->Poll()) OnLog(answer);
  if (!waiting.empty()) ReleaseUnanswered();
}

void KafkaSource::Impl::OnLog(const LogReader::Answer& answer) {
  if (failed) return;
  const auto [compared, ask] = samples->Answered(answer.where, answer.log, Clock::now());
  if (compared.verdict == LogComparison::Verdict::kOther) {
    return Fail(TopicReplaced(options.group, answer.where, compared));
  }
  if (ask) return reader->Ask(answer.where, {*ask});
  if (waiting.erase(answer.where) > 0) intake->Release(answer.where);
  AskForSamples();
}

void KafkaSource::Impl::ReleaseUnanswered() {
  const auto now = Clock::now();
  for (auto one = waiting.begin(); one != waiting.end();) {
    const bool in_doubt = reader->EndsTooEarly(one->first);
    if (failed || in_doubt || now < one->second + kCompareTimeout) {
      ++one;
      continue;
    }
    health.Note(locking::Severity::kWarn, "topic_not_compared",
                fmt::format("{}/{} goes on before it is known whether it is still the log that "
                            "the group has read: no broker tells yet",
                            one->first.topic, one->first.partition));
    intake->Release(one->first);
    one = waiting.erase(one);
  }
}

void KafkaSource::Impl::ForgetSamples() {
  samples.reset();
  waiting.clear();
  reader->Forget();
}

}  // namespace fencepost::consumer
