#include "consumer/kafka/dead_letters.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "consumer/kafka/dead_letter_record.h"
#include "consumer/kafka/producer.h"

namespace fencepost::consumer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kFirstBackoff{100};
constexpr Millis kMaxBackoff{5000};
constexpr Millis kTurn{50};       // how soon a stop is seen while acknowledgements are waited for
constexpr Millis kLookFor{1000};  // for the topic, before a letter goes again
constexpr std::size_t kBatch = 1000;

KafkaSettings Settings() {
  return {
      {"message.timeout.ms", "10000"},  // then a failure is told, and the letter goes again
      {"linger.ms", "5"},
      {"message.max.bytes", "67108864"},  // the brokers decide what is too large
      {"partitioner", "murmur2_random"},  // as the Java clients and the Kafka output
      // A topic that does not exist is told after so long.
      {"topic.metadata.propagation.max.ms", "1000"},
      {"log_level", "0"},  // what matters comes back as an error
  };
}

}  // namespace

struct DeadLetters::Impl {
  struct Entry {
    DeadLetter letter;
    Clock::time_point due;
    Millis backoff{0};  // 0: not refused yet
    std::optional<tl::expected<Offset, Error>> outcome;
  };

  Impl(const KafkaOptions& kafka_options, DeadLetterOptions dead_letter_options, std::string name,
       ConsumerObserver* watcher, Published on_published, State on_state)
      : kafka(kafka_options),
        options(std::move(dead_letter_options)),
        pipeline(std::move(name)),
        observer(watcher),
        published(std::move(on_published)),
        state(std::move(on_state)) {}

  void Run();
  std::vector<Entry> TakeDue();
  bool Send(std::vector<Entry>& batch);
  void Sort(std::vector<Entry> batch);
  void Refused(Entry entry);
  void Tell(bool is_up, const std::string& reason);
  bool Stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  const KafkaOptions kafka;
  const DeadLetterOptions options;
  const std::string pipeline;
  ConsumerObserver* const observer;
  const Published published;
  const State state;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<DeadLetter> arrived;  // guarded by mutex
  bool stopping = false;            // guarded by mutex

  std::unique_ptr<Producer> producer;
  std::vector<Entry> waiting;  // in the order of arrival
  bool up = true;
  std::thread thread;
};

void DeadLetters::Impl::Run() {
  for (;;) {
    std::vector<Entry> batch = TakeDue();
    if (Stopping()) return;
    if (producer->failed_for_good()) {
      if (auto made = Producer::Make(kafka, Settings())) producer = std::move(*made);
    }
    if (std::any_of(batch.begin(), batch.end(), [](const Entry& e) { return e.backoff.count(); })) {
      producer->LookFor(options.topic, kLookFor);
    }
    if (!Send(batch)) return;
    Sort(std::move(batch));
  }
}

// Waits for a letter that is due. Those that were never refused are due at once: one that nobody
// takes does not hold the others back.
std::vector<DeadLetters::Impl::Entry> DeadLetters::Impl::TakeDue() {
  const auto wake_at = [this] {
    auto at = Clock::time_point::max();
    for (const Entry& entry : waiting) at = std::min(at, entry.due);
    return at;
  };
  {
    std::unique_lock lock(mutex);
    const auto woken = [this] { return stopping || !arrived.empty(); };
    if (waiting.empty()) {
      changed.wait(lock, woken);
    } else {
      changed.wait_until(lock, wake_at(), woken);
    }
    for (DeadLetter& letter : arrived) waiting.push_back(Entry{std::move(letter), {}, {}, {}});
    arrived.clear();
  }
  const auto now = Clock::now();
  std::vector<Entry> due;
  std::vector<Entry> rest;
  for (Entry& entry : waiting) {
    (entry.due <= now && due.size() < kBatch ? due : rest).push_back(std::move(entry));
  }
  waiting = std::move(rest);
  return due;
}

// Returns when each has its outcome; false: stopped before that.
bool DeadLetters::Impl::Send(std::vector<Entry>& batch) {
  std::size_t out = 0;
  for (Entry& entry : batch) {
    const DeadLetterRecord record(options.topic, entry.letter, pipeline);
    ++out;
    auto sent = producer->Send(
        record.outgoing(),
        [&entry, &out](tl::expected<Offset, Error> outcome) {
          entry.outcome = std::move(outcome);
          --out;
        },
        kTurn);
    if (sent) continue;
    entry.outcome = tl::unexpected(sent.error());
    --out;
  }
  while (out > 0) {
    if (Stopping()) {
      producer.reset();  // its last reports still find the batch
      return false;
    }
    producer->Poll(kTurn);
  }
  return true;
}

void DeadLetters::Impl::Sort(std::vector<Entry> batch) {
  std::vector<std::uint64_t> done;
  std::string reason;
  for (Entry& entry : batch) {
    if (*entry.outcome) {
      done.push_back(entry.letter.id);
    } else {
      reason = entry.outcome->error().Line();
      Refused(std::move(entry));
    }
  }
  if (!reason.empty()) Tell(false, reason);
  if (!done.empty()) published(std::move(done));
  const bool any = std::any_of(waiting.begin(), waiting.end(),
                               [](const Entry& entry) { return entry.backoff.count() > 0; });
  if (!any) Tell(true, "");
}

void DeadLetters::Impl::Refused(Entry entry) {
  observer->OnDeadLetterError();
  observer->OnRetry(RetryStage::kDeadLetter);
  observer->OnRecordNote(locking::Severity::kWarn, "dead_letter_failed",
                         "cannot be published as a dead letter: " + entry.outcome->error().Line(),
                         {.where = entry.letter.where,
                          .offset = entry.letter.record.offset,
                          .record_id = entry.letter.record_id,
                          .token = entry.letter.token,
                          .attempt = entry.letter.attempts});
  entry.backoff = std::clamp(entry.backoff * 2, kFirstBackoff, kMaxBackoff);
  entry.due = Clock::now() + entry.backoff;
  entry.outcome.reset();
  waiting.push_back(std::move(entry));
}

void DeadLetters::Impl::Tell(bool is_up, const std::string& reason) {
  if (up == is_up) return;
  up = is_up;
  state(up, reason);
}

DeadLetters::DeadLetters(const KafkaOptions& kafka, DeadLetterOptions options, std::string pipeline,
                         ConsumerObserver* observer, Published published, State state)
    : impl_(std::make_unique<Impl>(kafka, std::move(options), std::move(pipeline), observer,
                                   std::move(published), std::move(state))) {}

DeadLetters::~DeadLetters() { Stop(); }

tl::expected<void, Error> DeadLetters::Start() {
  auto made = Producer::Make(impl_->kafka, Settings());
  if (!made) return tl::unexpected(made.error());
  impl_->producer = std::move(*made);
  impl_->thread = std::thread([this] { impl_->Run(); });
  return {};
}

void DeadLetters::Publish(std::vector<DeadLetter> letters) {
  {
    const std::lock_guard lock(impl_->mutex);
    std::move(letters.begin(), letters.end(), std::back_inserter(impl_->arrived));
  }
  impl_->changed.notify_one();
}

void DeadLetters::Stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_one();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace fencepost::consumer
