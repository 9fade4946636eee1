// Publishes dead letters on a thread of its own: each until the brokers have acknowledged it. While
// that fails it is tried again and again, with back-off, counted and said once in a while; the
// pipeline pauses meanwhile (the flow sees to that).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/dead_letter.h"
#include "consumer/observer.h"
#include "consumer/options.h"
#include "locking/error.h"

namespace fencepost::consumer {

class DeadLetters {
 public:
  // Both on the publisher's thread. Ids of letters that were acknowledged.
  using Published = std::function<void(std::vector<std::uint64_t> ids)>;
  using State = std::function<void(bool up, std::string reason)>;

  DeadLetters(const KafkaOptions& kafka, DeadLetterOptions options, std::string pipeline,
              ConsumerObserver* observer, Published published, State state);
  ~DeadLetters();  // Stop
  DeadLetters(const DeadLetters&) = delete;
  DeadLetters& operator=(const DeadLetters&) = delete;

  // Error: a librdkafka setting is refused.
  tl::expected<void, Error> Start();
  void Publish(std::vector<DeadLetter> letters);  // any thread; only enqueues
  // Letters without an acknowledgement are dropped: their offsets did not move.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::consumer
