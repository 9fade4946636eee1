// What a topic's settings do to the records that are written to it. Values; any thread.
#pragma once

#include <chrono>
#include <optional>

#include "consumer/kafka/client/settings.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct TopicRules {
  // Of the settings as brokers name them, those of before Kafka 3.6 too.
  static TopicRules Of(const KafkaSettings& settings);

  bool compacted = false;  // it keeps the last record of each key, and takes none without a key
  bool own_time = false;   // records have the time at which they were appended
  // Records are deleted when they are so old. nullopt: never.
  std::optional<Millis> retention;
  // How old a record may be that is written, and how far in the future. nullopt: without a bound.
  std::optional<Millis> before, after;

  // Whether a record of this time is taken. In doubt it is not: clocks differ.
  [[nodiscard]] bool Takes(std::chrono::milliseconds time, std::chrono::milliseconds now) const;
};

}  // namespace fencepost::consumer
