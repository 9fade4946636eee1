#include "consumer/kafka/output/dead_letter_publisher.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/output/dead_letter_record.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kFirstBackoff{100};
constexpr Millis kMaxBackoff{5000};
constexpr Millis kMaxBackoffOfOne{30'000};  // it goes up to three times then, whatever its size
constexpr Millis kTurn{50};       // how soon a stop is seen while acknowledgements are waited for
constexpr Millis kLookFor{1000};  // for the topic, before a letter goes again
constexpr std::size_t kBatch = 1000;

KafkaSettings Settings(const KafkaOptions& kafka) {
  KafkaSettings settings = ProducerSettings(kafka);
  settings["message.timeout.ms"] = "10000";  // then a failure is told, and the letter goes again
  // A topic that does not exist is told after so long.
  settings["topic.metadata.propagation.max.ms"] = "1000";
  settings["log_level"] = "0";  // what matters comes back as an error
  return settings;
}

// One request at a time: then a refusal is no trouble for those behind it.
KafkaSettings UnbatchedSettings(const KafkaOptions& kafka) {
  KafkaSettings settings = Settings(kafka);
  SetSingles(settings, kafka);
  settings["linger.ms"] = "0";
  settings["max.in.flight"] = "1";
  return settings;
}

// Because of the record itself (too large, invalid), or of another in its batch.
bool RejectedForContent(const Error& error) {
  return error.code == Producer::kTooLarge || error.code == Producer::kRefused;
}

}  // namespace

struct DeadLetterPublisher::Impl {
  struct Entry {
    DeadLetter letter;
    Clock::time_point due;
    Millis backoff{0};   // 0: not refused yet
    bool alone = false;  // it was in a batch that was refused for what was in it
    std::size_t max_error = kMaxErrorHeader;
    std::string stuck;  // rejected because of the record itself: what is needed; else empty
    std::optional<tl::expected<Offset, Error>> outcome;
  };

  Impl(const KafkaOptions& kafka_options, DeadLetterOptions dead_letter_options, std::string name,
       ConsumerObserver* watcher, Outcome on_outcome, State on_state)
      : kafka(kafka_options),
        options(std::move(dead_letter_options)),
        pipeline(std::move(name)),
        observer(watcher),
        tell(std::move(on_outcome)),
        state(std::move(on_state)) {}

  void Run();
  void Revive(bool some_alone);
  std::vector<Entry> TakeDue();
  bool Send(std::vector<Entry>& batch);
  void SendOne(Producer& by, Entry& entry, std::size_t& out);
  void HandleOutcomes(std::vector<Entry> batch);
  bool RetryAloneOrShorter(Entry& entry) const;
  void Refused(Entry entry);
  void TellState(const std::string& why_down);
  bool Stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  const KafkaOptions kafka;
  const DeadLetterOptions options;
  const std::string pipeline;
  ConsumerObserver* const observer;
  const Outcome tell;
  const State state;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<DeadLetter> arrived;  // guarded by mutex
  std::set<std::uint64_t> dropped;  // guarded by mutex; what has arrived before
  bool stopping = false;            // guarded by mutex

  std::unique_ptr<Producer> producer;
  std::unique_ptr<Producer> unbatched;  // for those that go alone; made when the first one does
  std::vector<Entry> waiting;           // in the order of arrival
  std::pair<bool, std::string> told{true, ""};
  std::thread thread;
};

void DeadLetterPublisher::Impl::Run() {
  for (;;) {
    std::vector<Entry> batch = TakeDue();
    if (Stopping()) return;
    Revive(std::any_of(batch.begin(), batch.end(), [](const Entry& entry) { return entry.alone; }));
    const bool again = std::any_of(batch.begin(), batch.end(), [](const Entry& entry) {
      return entry.backoff.count() > 0 && entry.stuck.empty();
    });
    if (again) producer->LookFor(options.topic, kLookFor);
    if (!Send(batch)) return;
    HandleOutcomes(std::move(batch));
  }
}

// A producer that can send no more gives way to a new one.
void DeadLetterPublisher::Impl::Revive(bool some_alone) {
  if (producer->failed_for_good()) {
    if (auto made = Producer::Make(kafka, Settings(kafka))) producer = std::move(*made);
  }
  if (some_alone && (unbatched == nullptr || unbatched->failed_for_good())) {
    if (auto made = Producer::Make(kafka, UnbatchedSettings(kafka))) unbatched = std::move(*made);
  }
}

// Waits for a letter that is due. Those that were never refused are due at once: one that nobody
// takes does not hold the others back.
std::vector<DeadLetterPublisher::Impl::Entry> DeadLetterPublisher::Impl::TakeDue() {
  const auto wake_at = [this] {
    auto at = Clock::time_point::max();
    for (const Entry& entry : waiting) at = std::min(at, entry.due);
    return at;
  };
  {
    std::unique_lock lock(mutex);
    const auto woken = [this] { return stopping || !arrived.empty() || !dropped.empty(); };
    if (waiting.empty()) {
      changed.wait(lock, woken);
    } else {
      changed.wait_until(lock, wake_at(), woken);
    }
    for (DeadLetter& letter : arrived) waiting.emplace_back().letter = std::move(letter);
    arrived.clear();
    // What is not here any more was published.
    std::erase_if(waiting,
                  [this](const Entry& entry) { return dropped.contains(entry.letter.id); });
    dropped.clear();
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
bool DeadLetterPublisher::Impl::Send(std::vector<Entry>& batch) {
  for (const bool alone : {false, true}) {
    std::unique_ptr<Producer>& by = alone && unbatched != nullptr ? unbatched : producer;
    std::size_t out = 0;
    for (Entry& entry : batch) {
      if (entry.alone == alone) SendOne(*by, entry, out);
    }
    while (out > 0) {
      if (Stopping()) {
        by.reset();  // its last reports still find the batch
        return false;
      }
      by->Poll(kTurn);
    }
  }
  return true;
}

void DeadLetterPublisher::Impl::SendOne(Producer& by, Entry& entry, std::size_t& out) {
  const DeadLetterRecord record(options.topic, entry.letter, pipeline, entry.max_error);
  ++out;
  const auto sent = by.Send(
      record.outgoing(),
      [&entry, &out](tl::expected<Offset, Error> outcome) {
        entry.outcome = std::move(outcome);
        --out;
      },
      kTurn);
  if (sent) return;
  entry.outcome = tl::unexpected(sent.error());
  --out;
}

void DeadLetterPublisher::Impl::HandleOutcomes(std::vector<Entry> batch) {
  Ids done;
  Ids refused;
  std::string why_down;
  for (Entry& entry : batch) {
    if (*entry.outcome || Planted("refused_letter_counts")) {
      done.push_back(entry.letter.id);
    } else if (RetryAloneOrShorter(entry)) {
      entry.outcome.reset();
      waiting.push_back(std::move(entry));
    } else {
      if (RejectedForContent(entry.outcome->error())) {
        refused.push_back(entry.letter.id);
      } else {
        why_down = entry.outcome->error().Line();
      }
      Refused(std::move(entry));
    }
  }
  if (!batch.empty()) tell(std::move(done), std::move(refused));
  TellState(why_down);
}

// It goes again at once, in a smaller form than the one that was refused; false: there is none.
bool DeadLetterPublisher::Impl::RetryAloneOrShorter(Entry& entry) const {
  const Error& error = entry.outcome->error();
  if (!RejectedForContent(error)) return false;
  if (!std::exchange(entry.alone, true)) return true;
  if (error.code != Producer::kTooLarge) return false;
  const auto shorter = ShorterError(entry.letter, entry.max_error);
  entry.max_error = shorter.value_or(kMaxErrorHeader);
  return shorter.has_value();
}

void DeadLetterPublisher::Impl::Refused(Entry entry) {
  const Error& error = entry.outcome->error();
  std::string text = "cannot be published as a dead letter: " + error.Line();
  entry.stuck.clear();
  if (RejectedForContent(error)) {
    const DeadLetterRecord record(options.topic, entry.letter, pipeline);
    const std::string need = error.code == Producer::kTooLarge
                                 ? fmt::format("raise max.message.bytes of {} to at least {}",
                                               options.topic, record.BatchBytes())
                                 : fmt::format("let {} take it ({})", options.topic, error.what);
    text = "cannot be published as a dead letter, and waits: " + need;
    entry.stuck = fmt::format("{} waits: {}",
                              SourceText(entry.letter.where, entry.letter.record.offset), need);
  }
  observer->OnDeadLetterError();
  observer->OnRetry(RetryStage::kDeadLetter);
  observer->OnRecordNote(entry.stuck.empty() ? locking::Severity::kWarn : locking::Severity::kError,
                         "dead_letter_failed", text,
                         {.where = entry.letter.where,
                          .offset = entry.letter.record.offset,
                          .record_id = entry.letter.record_id,
                          .token = entry.letter.token,
                          .attempt = entry.letter.attempts});
  entry.backoff = std::clamp(entry.backoff * 2, kFirstBackoff,
                             entry.stuck.empty() ? kMaxBackoff : kMaxBackoffOfOne);
  entry.due = Clock::now() + entry.backoff;
  entry.outcome.reset();
  waiting.push_back(std::move(entry));
}

// `why_down`: of this round; empty where nothing says again that the brokers take no letters.
void DeadLetterPublisher::Impl::TellState(const std::string& why_down) {
  const Entry* stuck = nullptr;
  bool down = false;
  for (const Entry& entry : waiting) {
    if (!entry.stuck.empty() && stuck == nullptr) stuck = &entry;
    if (entry.stuck.empty() && entry.backoff.count() > 0) down = true;
  }
  std::pair<bool, std::string> now{!down, stuck == nullptr ? "" : stuck->stuck};
  if (down) now.second = why_down.empty() ? told.second : why_down;
  if (now == told) return;
  told = std::move(now);
  state(told.first, told.second);
}

DeadLetterPublisher::DeadLetterPublisher(const KafkaOptions& kafka, DeadLetterOptions options,
                                         std::string pipeline, ConsumerObserver* observer,
                                         Outcome outcome, State state)
    : impl_(std::make_unique<Impl>(kafka, std::move(options), std::move(pipeline), observer,
                                   std::move(outcome), std::move(state))) {}

DeadLetterPublisher::~DeadLetterPublisher() { Stop(); }

tl::expected<void, Error> DeadLetterPublisher::Start() {
  auto made = Producer::Make(impl_->kafka, Settings(impl_->kafka));
  if (!made) return tl::unexpected(made.error());
  impl_->producer = std::move(*made);
  impl_->thread = std::thread([this] { impl_->Run(); });
  return {};
}

void DeadLetterPublisher::Publish(std::vector<DeadLetter> letters) {
  {
    const std::lock_guard lock(impl_->mutex);
    std::move(letters.begin(), letters.end(), std::back_inserter(impl_->arrived));
  }
  impl_->changed.notify_one();
}

void DeadLetterPublisher::Drop(Ids ids) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->dropped.insert(ids.begin(), ids.end());
  }
  impl_->changed.notify_one();
}

void DeadLetterPublisher::Stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_one();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace fencepost::consumer
