// Whether the topics are still the ones that the group has read (witness.h).
#include <fmt/format.h>

#include "consumer/kafka/source/source_impl.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {
namespace {

// Records wait for the answer at the start of an assignment, but not for ever. The question stays,
// and ends the worker whenever the answer comes.
constexpr std::chrono::seconds kPatience{10};

std::string TimeOf(const Witness& witness) {
  if (witness.timestamp < 0) return "without a timestamp";
  return "of " + Rfc3339(std::chrono::milliseconds(witness.timestamp));
}

}  // namespace

std::vector<TopicPartition> KafkaSource::Impl::BeginWitnesses() {
  ForgetWitnesses();
  witnesses = std::make_shared<WitnessBook>();
  for (const AssignedPartition& one : assigned) BeginWitness(one.where);
  std::vector<TopicPartition> apart;
  for (const auto& [where, since] : waiting) apart.push_back(where);
  return apart;
}

void KafkaSource::Impl::BeginWitness(const TopicPartition& where) {
  const auto committed = starts->WitnessOf(where);
  witnesses->Begin(where, committed);
  if (!committed) return;
  reader->Ask(where, *committed);
  waiting[where] = Clock::now();
}

void KafkaSource::Impl::AskForSamples() {
  if (witnesses == nullptr) return;
  const auto now = Clock::now();
  for (const AssignedPartition& one : assigned) {
    if (witnesses->Wants(one.where, now)) intake->Sample(one.partition);
  }
}

void KafkaSource::Impl::OnSamples(const std::vector<SampledWitness>& samples) {
  if (witnesses == nullptr) return;
  for (const SampledWitness& one : samples) {
    if (const auto question = witnesses->Sampled(one.where, one.witness, Clock::now())) {
      reader->Ask(one.where, *question);
    }
  }
}

void KafkaSource::Impl::CheckWitnesses() {
  if (failed || !reader->Asking()) return;
  for (const WitnessReader::Finding& finding : reader->Poll()) OnWitness(finding);
  if (!waiting.empty()) ReleaseUnanswered();
}

void KafkaSource::Impl::OnWitness(const WitnessReader::Finding& finding) {
  if (finding.answer == WitnessAnswer::kOther) {
    Fail(Replaced(finding));
    return;
  }
  if (failed) return;
  if (const auto next = witnesses->Answered(finding.where, finding.answer, Clock::now())) {
    reader->Ask(finding.where, *next);
    return;
  }
  if (waiting.erase(finding.where) > 0) intake->Release(finding.where);
  AskForSamples();
}

void KafkaSource::Impl::ReleaseUnanswered() {
  const auto now = Clock::now();
  for (auto one = waiting.begin(); one != waiting.end();) {
    if (failed || now < one->second + kPatience) {
      ++one;
      continue;
    }
    condition.Note(locking::Severity::kWarn, "topic_not_compared",
                   fmt::format("{}/{} goes on before it is known whether it is still the log that "
                               "the group has read: no broker answers yet",
                               one->first.topic, one->first.partition));
    intake->Release(one->first);
    one = waiting.erase(one);
  }
}

void KafkaSource::Impl::ForgetWitnesses() {
  witnesses.reset();
  waiting.clear();
  reader->Forget();
}

Error KafkaSource::Impl::Replaced(const WitnessReader::Finding& finding) const {
  const TopicPartition& where = finding.where;
  return Error{
      "topic_replaced",
      fmt::format("the topic was created anew or cut short: the group has read a record {} "
                  "here, and now there is another one, {}; what stands below the group's "
                  "offset may never have been read",
                  TimeOf(finding.asked), TimeOf(*finding.found)),
      SourceText(where, finding.asked.offset),
      fmt::format("stop the workers and set the offsets to where the group is to go on: "
                  "kafka-consumer-groups --group {} --topic {} --reset-offsets "
                  "--to-earliest --execute",
                  options.group, where.topic)};
}

}  // namespace fencepost::consumer
