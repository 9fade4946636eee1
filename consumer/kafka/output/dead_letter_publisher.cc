#include "consumer/kafka/output/dead_letter_publisher.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kFirstBackoff{100};
constexpr Millis kMaxBackoff{5000};
constexpr Millis kMaxBackoffOfOne{30'000};  // it goes up to three times then, whatever its size
constexpr Millis kPollTurn{50};   // how soon a stop is seen while acknowledgements are waited for
constexpr Millis kLookFor{1000};  // for the topic
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

// Because of the record itself, or of another in its batch.
Blame BlameOf(const Error& error) {
  if (error.code == Producer::kTooLarge) return Blame::kItsSize;
  if (error.code == Producer::kTimeRefused) return Blame::kItsTime;
  return error.code == Producer::kRefused ? Blame::kItsContent : Blame::kNoRecord;
}

}  // namespace

DeadLetterPublisher::DeadLetterPublisher(const KafkaOptions& kafka, DeadLetterOptions options,
                                         std::string pipeline, ConsumerObserver* observer,
                                         Outcome outcome, State state,
                                         std::optional<KafkaOptions> source)
    : kafka_(kafka),
      source_(std::move(source)),
      options_(std::move(options)),
      pipeline_(std::move(pipeline)),
      observer_(observer),
      outcome_(std::move(outcome)),
      state_(std::move(state)) {}

DeadLetterPublisher::~DeadLetterPublisher() { Stop(); }

bool DeadLetterPublisher::Stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool DeadLetterPublisher::LettersWait() {
  const std::lock_guard lock(mutex_);
  return !arrived_.empty();
}

// A topic that is missing, or not to be written, is told before there is a letter, and waited for.
// Where no broker says anything, a letter waits for no answer here.
bool DeadLetterPublisher::AwaitTopic() {
  for (;;) {
    const auto said = producer_->LookFor(options_.topic, kLookFor);
    const bool there = said == RD_KAFKA_RESP_ERR_NO_ERROR;
    tl::expected<bool, Error> loop = false;
    if (there && source_) loop = SameCluster(*source_, kafka_, kLookFor);
    if (there && loop && !*loop) break;
    const bool missing = said == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    const bool forbidden = said == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    const bool same = loop && *loop;
    const bool known = missing || forbidden || same;
    // Of another cluster letters go out only once it is known to be another: they wait for that.
    if (known || (source_ && LettersWait())) {
      const std::string why =
          same    ? ErrorOfLoop("dead_letter").Line()
          : known ? ErrorOfTopic(options_.topic, "dead_letter.topic", said).Line()
          : !loop ? loop.error().Line()
                  : "no broker of dead_letter.brokers answers; the letters wait for one";
      if (Tell({false, why})) {
        observer_->OnNote(locking::Severity::kWarn,
                          missing     ? "topic_missing"
                          : forbidden ? "not_authorised"
                                      : "dead_letter_failed",
                          why);
      }
    }
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kLookFor, [this] { return stopping_; })) return false;
    if (told_.first && !arrived_.empty() && !source_) return true;
  }
  TellState("");
  return true;
}

void DeadLetterPublisher::Run() {
  if (!AwaitTopic()) return;
  for (;;) {
    std::vector<Entry> batch = TakeDue();
    if (Stopping()) return;
    Revive(std::any_of(batch.begin(), batch.end(), [](const Entry& entry) { return entry.alone; }));
    const bool again = std::any_of(batch.begin(), batch.end(), [](const Entry& entry) {
      return entry.backoff.count() > 0 && entry.stuck.empty();
    });
    if (again) (void)producer_->LookFor(options_.topic, kLookFor);
    if (!Send(batch)) return;
    HandleOutcomes(std::move(batch));
  }
}

// A producer that can send no more gives way to a new one.
void DeadLetterPublisher::Revive(bool some_alone) {
  if (producer_->failed_for_good()) {
    if (auto made = Producer::Make(kafka_, Settings(kafka_))) producer_ = std::move(*made);
  }
  if (some_alone && (unbatched_ == nullptr || unbatched_->failed_for_good())) {
    if (auto made = Producer::Make(kafka_, UnbatchedSettings(kafka_)))
      unbatched_ = std::move(*made);
  }
}

// Waits for a letter that is due. Those that were never refused are due at once: one that nobody
// takes does not hold the others back.
std::vector<DeadLetterPublisher::Entry> DeadLetterPublisher::TakeDue() {
  const auto wake_at = [this] {
    auto at = Clock::time_point::max();
    for (const Entry& entry : waiting_) at = std::min(at, entry.due);
    return at;
  };
  {
    std::unique_lock lock(mutex_);
    const auto woken = [this] { return stopping_ || !arrived_.empty() || !dropped_.empty(); };
    if (waiting_.empty()) {
      changed_.wait(lock, woken);
    } else {
      changed_.wait_until(lock, wake_at(), woken);
    }
    for (DeadLetter& letter : arrived_) waiting_.emplace_back().letter = std::move(letter);
    arrived_.clear();
    // What is not here any more was published.
    std::erase_if(waiting_,
                  [this](const Entry& entry) { return dropped_.contains(entry.letter.id); });
    dropped_.clear();
  }
  const auto now = Clock::now();
  std::vector<Entry> due;
  std::vector<Entry> rest;
  for (Entry& entry : waiting_) {
    (entry.due <= now && due.size() < kBatch ? due : rest).push_back(std::move(entry));
  }
  waiting_ = std::move(rest);
  return due;
}

// Returns when each has its outcome; false: stopped before that.
bool DeadLetterPublisher::Send(std::vector<Entry>& batch) {
  for (const bool alone : {false, true}) {
    std::unique_ptr<Producer>& by = alone && unbatched_ != nullptr ? unbatched_ : producer_;
    std::size_t out = 0;
    for (Entry& entry : batch) {
      if (entry.alone == alone) SendOne(*by, entry, out);
    }
    while (out > 0) {
      if (Stopping()) {
        by.reset();  // its last reports still find the batch
        return false;
      }
      by->Poll(kPollTurn);
    }
  }
  return true;
}

void DeadLetterPublisher::SendOne(Producer& by, Entry& entry, std::size_t& out) {
  const auto now = locking::ReadClocks().wall.time_since_epoch();
  if (times_.Cover(entry.letter.record.timestamp, now)) entry.form.timed = false;
  const DeadLetterRecord record(options_.topic, entry.letter, pipeline_, entry.form);
  ++out;
  const auto sent = by.Send(
      record.outgoing(),
      [&entry, &out](tl::expected<Offset, Error> outcome) {
        entry.outcome = std::move(outcome);
        --out;
      },
      kPollTurn);
  if (sent) return;
  entry.outcome = tl::unexpected(sent.error());
  --out;
}

void DeadLetterPublisher::HandleOutcomes(std::vector<Entry> batch) {
  Ids done;
  Ids refused;
  std::string why_down;
  for (Entry& entry : batch) {
    if (*entry.outcome || Planted("refused_letter_counts")) {
      done.push_back(entry.letter.id);
    } else if (RetryAloneOrOtherwise(entry)) {
      entry.outcome.reset();
      waiting_.push_back(std::move(entry));
    } else {
      if (BlameOf(entry.outcome->error()) != Blame::kNoRecord) {
        refused.push_back(entry.letter.id);
      } else {
        why_down = entry.outcome->error().Line();
      }
      Refused(std::move(entry));
    }
  }
  if (!batch.empty()) outcome_(std::move(done), std::move(refused));
  TellState(why_down);
}

// It goes again at once, in another form than the one that was refused; false: there is none.
bool DeadLetterPublisher::RetryAloneOrOtherwise(Entry& entry) {
  const Blame blame = BlameOf(entry.outcome->error());
  if (blame == Blame::kNoRecord) return false;
  if (!std::exchange(entry.alone, true)) return true;
  const auto next = NextForm(entry.letter, entry.form, blame);
  entry.form = next.value_or(LetterForm());
  const auto& time = entry.letter.record.timestamp;
  if (next && blame == Blame::kItsTime && time) {
    times_.Add(*time, locking::ReadClocks().wall.time_since_epoch());
  }
  return next.has_value();
}

void DeadLetterPublisher::Refused(Entry entry) {
  const Error& error = entry.outcome->error();
  std::string text = "cannot be published as a dead letter: " + error.Line();
  entry.stuck.clear();
  if (const Blame blame = BlameOf(error); blame != Blame::kNoRecord) {
    const DeadLetterRecord record(options_.topic, entry.letter, pipeline_);
    const std::string need = NeedOf(record, blame, error.what);
    text = "cannot be published as a dead letter, and waits: " + need;
    entry.stuck = fmt::format("{} waits: {}",
                              SourceText(entry.letter.where, entry.letter.record.offset), need);
  }
  observer_->OnDeadLetterError();
  observer_->OnRetry(RetryStage::kDeadLetter);
  observer_->OnRecordNote(
      entry.stuck.empty() ? locking::Severity::kWarn : locking::Severity::kError,
      "dead_letter_failed", text,
      {.where = entry.letter.where,
       .offset = entry.letter.record.offset,
       .record_id = entry.letter.record_id,
       .token = entry.letter.token,
       .attempt = entry.letter.attempts,
       .trace = ParseTraceparent(entry.letter.traceparent).value_or(TraceContext())});
  entry.backoff = std::clamp(entry.backoff * 2, kFirstBackoff,
                             entry.stuck.empty() ? kMaxBackoff : kMaxBackoffOfOne);
  entry.due = Clock::now() + entry.backoff;
  entry.outcome.reset();
  waiting_.push_back(std::move(entry));
}

// `why_down`: of this round; empty where nothing says again that the brokers take no letters.
void DeadLetterPublisher::TellState(const std::string& why_down) {
  const Entry* stuck = nullptr;
  bool down = false;
  for (const Entry& entry : waiting_) {
    if (!entry.stuck.empty() && stuck == nullptr) stuck = &entry;
    if (entry.stuck.empty() && entry.backoff.count() > 0) down = true;
  }
  std::pair<bool, std::string> now{!down, stuck == nullptr ? "" : stuck->stuck};
  if (down) now.second = why_down.empty() ? told_.second : why_down;
  Tell(std::move(now));
}

bool DeadLetterPublisher::Tell(std::pair<bool, std::string> now) {
  if (now == told_) return false;
  told_ = std::move(now);
  state_(told_.first, told_.second);
  return true;
}

tl::expected<void, Error> DeadLetterPublisher::Start() {
  auto made = Producer::Make(kafka_, Settings(kafka_));
  if (!made) return tl::unexpected(made.error());
  producer_ = std::move(*made);
  thread_ = std::thread([this] { Run(); });
  return {};
}

void DeadLetterPublisher::Publish(std::vector<DeadLetter> letters) {
  {
    const std::lock_guard lock(mutex_);
    std::move(letters.begin(), letters.end(), std::back_inserter(arrived_));
  }
  changed_.notify_one();
}

void DeadLetterPublisher::Drop(Ids ids) {
  {
    const std::lock_guard lock(mutex_);
    dropped_.insert(ids.begin(), ids.end());
  }
  changed_.notify_one();
}

void DeadLetterPublisher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace fencepost::consumer
