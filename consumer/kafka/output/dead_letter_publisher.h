// Publishes dead letters on a thread of its own: each until the brokers have acknowledged it. While
// that fails it is tried again and again, with back-off (100 ms to 5 s, for each letter), counted
// and noted ("dead_letter_failed"); the pipeline pauses meanwhile (the flow sees to that). Whatever
// the reason is (brokers away, no such topic, not authorised): a person can fix it, so it is
// waited for. So is a topic that is missing when it starts.
//
// A batch that is refused for what is in it (too large, above all) does not say which letter is to
// blame: each of its letters goes again at once, as a batch of its own, compressed as far as it
// goes, and in what other forms it has (NextForm). If none is taken it waits by itself, with
// back-off (to 30 s), for the topic's settings to be changed: the others go on, and the state stays
// up, with a reason that says what is needed.
//
// A letter may be published more than once: after a lost acknowledgement. Letters of one key go to
// one partition, in the order of Publish unless one of them had to be tried again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/output/dead_letter_record.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/dead_letter.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class DeadLetterPublisher {
 public:
  using Ids = std::vector<std::uint64_t>;
  // Both on the publisher's thread. Outcome: of letters that were acknowledged, and of those that
  // were refused for themselves and wait. State: at first it counts as up. Down: letters wait that
  // the brokers did not take, for whatever reason. Up, with a reason: only such wait that are
  // refused for themselves; the reason names the oldest.
  using Outcome = std::function<void(Ids published, Ids refused)>;
  using State = std::function<void(bool up, std::string reason)>;

  // `source`: as MakeKafkaOutput; while it may be the same cluster, letters wait.
  DeadLetterPublisher(const KafkaOptions& kafka, DeadLetterOptions options, std::string pipeline,
                      ConsumerObserver* observer, Outcome outcome, State state,
                      std::optional<KafkaOptions> source = {});
  ~DeadLetterPublisher();  // Stop
  DeadLetterPublisher(const DeadLetterPublisher&) = delete;
  DeadLetterPublisher& operator=(const DeadLetterPublisher&) = delete;

  // Error: a librdkafka setting is refused.
  tl::expected<void, Error> Start();
  void Publish(std::vector<DeadLetter> letters);  // any thread; only enqueues
  // These need not be published any more (their partitions are another worker's), unless they are
  // on their way already. Any thread; only enqueues.
  void Drop(Ids ids);
  // Letters without an acknowledgement are dropped: their offsets did not move.
  void Stop();

 private:
  struct Entry {
    DeadLetter letter;
    std::chrono::steady_clock::time_point due;
    Millis backoff{0};   // 0: not refused yet
    bool alone = false;  // it was in a batch that was refused for what was in it
    LetterForm form;
    std::string stuck;  // rejected because of the record itself: what is needed; else empty
    std::optional<tl::expected<Offset, Error>> outcome;
  };

  void Run();
  bool AwaitTopic();  // false: stopped before that
  void Revive(bool some_alone);
  std::vector<Entry> TakeDue();
  bool Send(std::vector<Entry>& batch);
  void SendOne(Producer& by, Entry& entry, std::size_t& out);
  void HandleOutcomes(std::vector<Entry> batch);
  bool RetryAloneOrOtherwise(Entry& entry);
  void Refused(Entry entry);
  void TellState(const std::string& why_down);
  bool Tell(std::pair<bool, std::string> now);  // whether it is another than was told
  bool Stopping();
  bool LettersWait();

  const KafkaOptions kafka_;
  const std::optional<KafkaOptions> source_;
  const DeadLetterOptions options_;
  const std::string pipeline_;
  ConsumerObserver* const observer_;
  const Outcome outcome_;
  const State state_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DeadLetter> arrived_;  // guarded by mutex_
  std::set<std::uint64_t> dropped_;  // guarded by mutex_; what has arrived before
  bool stopping_ = false;            // guarded by mutex_

  std::unique_ptr<Producer> producer_;
  std::unique_ptr<Producer> unbatched_;  // for those that go alone; made when the first one does
  std::vector<Entry> waiting_;           // in the order of arrival
  RefusedTimes times_;
  std::pair<bool, std::string> told_{true, ""};
  std::thread thread_;
};

}  // namespace fencepost::consumer
