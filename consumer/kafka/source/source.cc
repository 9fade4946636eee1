#include "consumer/kafka/source/source.h"

#include <syslog.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/source/source_impl.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::milliseconds kTurn{10};      // longest wait for a record before other work
constexpr std::chrono::milliseconds kHeldTurn{1};   // likewise, for a schema; each is longer
constexpr std::chrono::milliseconds kIdleTurn{80};  // the same while nothing comes
constexpr std::chrono::seconds kCloseLimit{5};
constexpr std::chrono::seconds kQuestions{3};  // whether a topic that was forbidden still is

locking::Severity SeverityOf(int level) {
  if (level <= LOG_ERR)
    return locking::Severity::kWarn;  // what is an error for us we say ourselves
  return level <= LOG_NOTICE ? locking::Severity::kInfo : locking::Severity::kDebug;
}

}  // namespace

KafkaSource::Impl::Impl(const KafkaOptions& kafka_options, std::string client, SourceSink* to,
                        ConsumerObserver* watcher, SourceExtras more)
    : options(kafka_options),
      read(options.topics),
      client_id(std::move(client)),
      extras(std::move(more)),
      sink(to),
      observer(watcher),
      health(to, watcher) {}

tl::expected<void, Error> KafkaSource::Impl::Start() {
  if (const auto checked = CheckKafkaOptions(options); !checked) return checked;
  auto conf = MakeConf(ConsumerSettings(options, client_id, extras.prefetch_bytes));
  if (!conf) return tl::unexpected(conf.error());
  rd_kafka_conf_t* raw = conf->get();
  rd_kafka_conf_set_opaque(raw, this);
  rd_kafka_conf_set_rebalance_cb(
      raw, [](rd_kafka_t*, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* list,
              void* opaque) { static_cast<Impl*>(opaque)->OnRebalance(what, list); });
  rd_kafka_conf_set_error_cb(raw, [](rd_kafka_t*, int error, const char* text, void* opaque) {
    static_cast<Impl*>(opaque)->OnError(static_cast<rd_kafka_resp_err_t>(error), text, "");
  });
  rd_kafka_conf_set_log_cb(
      raw, [](const rd_kafka_t* rk, int level, const char* facility, const char* text) {
        auto* self = rk == nullptr ? nullptr : static_cast<Impl*>(rd_kafka_opaque(rk));
        if (self == nullptr) return;
        self->health.Note(SeverityOf(level), EventName("librdkafka_", facility), text);
      });
  auto made = MakeHandle(RD_KAFKA_CONSUMER, *conf);
  if (!made) return tl::unexpected(made.error());
  rd_kafka_t* handle = made->release();
  consumer = rdkafka::ShareConsumer(handle);
  rd_kafka_poll_set_consumer(handle);
  rd_kafka_set_log_queue(handle, nullptr);

  commits.emplace(handle, [this](CommitReport report) { OnCommitReport(std::move(report)); });
  intake.emplace(consumer);
  reader.emplace(options);
  starts.emplace(
      handle, &*commits, options, extras, [this] { return stopping || !StillMember(); },
      [this](locking::Severity severity, std::string_view event, std::string_view text) {
        observer->OnNote(severity, event, text);
      });
  if (const auto error = Subscribe(); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return tl::unexpected(Error{"bad_config", rd_kafka_err2str(error), "kafka.topics", ""});
  }
  next_second = Clock::now();
  thread = std::thread([this] { Run(); });
  return {};
}

// A pause that waited for the end of an idle turn would let records in that come meanwhile.
void KafkaSource::Impl::Wake() {
  wake.notify_all();
  if (intake) intake->Interrupt();
}

void KafkaSource::Impl::Run() {
  health.SetGroup({PartPhase::kJoining, ""});
  std::chrono::milliseconds held_turn = kHeldTurn;
  while (!stopping) {
    RunCommands();
    PollConsumer();
    if (rejoin) Rejoin();
    const std::size_t room = sink->Room();
    if (failed) held.clear();
    if (!held.empty()) {
      DeliverHeld();
      if (!held.empty()) WaitForCommand(held_turn);
      held_turn = held.empty() ? kHeldTurn : std::min(2 * held_turn, kTurn);
    } else if (room > 0 && intake->Flowing() && !failed) {
      GatherRecords(room);
    } else {
      WaitForCommand(kTurn);
    }
    CheckLogs();
    EverySecond();
  }
  RunCommands();
  DrainAsMember();
  Close();
}

// Each empty turn makes the next one longer, so that an idle worker seldom wakes.
void KafkaSource::Impl::GatherRecords(std::size_t room) {
  IntakeBatch batch = intake->Gather(turn, room, sink->RoomBytes());
  const bool idle = batch.empty() && waiting.empty();
  turn = idle ? std::min(2 * turn, kIdleTurn) : kTurn;
  Deliver(std::move(batch));
}

void KafkaSource::Impl::RunCommands() {
  std::vector<Command> now;
  std::vector<PartitionOffset> offsets;
  {
    const std::lock_guard lock(mutex);
    now.swap(commands);
    offsets.swap(to_commit);
  }
  if (!now.empty() || !offsets.empty()) turn = kTurn;  // an answer is to be read
  for (const Command& command : now) {
    if (command.epoch != epoch.load()) continue;
    command.pause ? intake->Pause(command.partitions) : intake->Resume(command.partitions);
  }
  if (!offsets.empty() && StillMember()) commits->Ask(offsets);
  commits->Pump();
}

void KafkaSource::Impl::WaitForCommand(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex);
  wake.wait_for(lock, most, [this] {
    return stopping || room_came || !commands.empty() || !to_commit.empty();
  });
  room_came = false;
}

// Rebalances, errors and the log are served here, by callbacks inside the poll; it also tells
// librdkafka that this thread lives (max.poll.interval.ms).
void KafkaSource::Impl::PollConsumer() {
  while (rdkafka::Message message{rd_kafka_consumer_poll(consumer.get(), 0)}) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      OnConsumerError(message.get());
      continue;
    }
    IntakeBatch batch;
    intake->Take(std::move(message), batch);
    Deliver(std::move(batch));
  }
}

void KafkaSource::Impl::Deliver(IntakeBatch batch) {
  if (batch.empty()) return;
  if (!batch.samples.empty()) OnSamples(batch.samples);
  held.push_back(std::move(batch));
  DeliverHeld();
}

void KafkaSource::Impl::Tell(IntakeBatch batch) {
  if (health.TopicTrouble()) EndTroubles(batch);
  if (extras.filter) FilterRecords(batch.records);
  if (!batch.records.empty()) sink->OnRecords(std::move(batch.records));
  if (!batch.ends.empty()) sink->OnPartitionEnd(std::move(batch.ends));
  for (const PartitionProblem& problem : batch.problems) OnProblem(problem);
}

void KafkaSource::Impl::FilterRecords(std::vector<Record>& records) const {
  auto of = assigned.end();
  for (Record& record : records) {
    if (of == assigned.end() || of->partition != record.partition) {
      of = std::ranges::find(assigned, record.partition, &AssignedPartition::partition);
    }
    if (of != assigned.end()) extras.filter(of->where, record);
  }
}

// What comes is there, and may be read. An error that is behind it in the batch is told again.
void KafkaSource::Impl::EndTroubles(const IntakeBatch& batch) {
  std::set<PartitionIndex> seen;
  for (const Record& record : batch.records) seen.insert(record.partition);
  for (const PartitionEnd& end : batch.ends) seen.insert(end.partition);
  for (const AssignedPartition& p : assigned) {
    if (seen.contains(p.partition)) health.Seen(p.where);
  }
}

void KafkaSource::Impl::EverySecond() {
  const auto now = Clock::now();
  if (now < next_second) return;
  next_second = now + std::chrono::seconds(1);
  if (health.Trouble(Meaning::kBrokersAway)) ProbeBrokers();
  if (health.TopicTrouble() && now >= next_question) {
    next_question = now + kQuestions;
    intake->AskForEnds([this](const TopicPartition& p) { return health.TroubleWith(p); });
  }
  if (!doubted.empty()) {
    PartitionProblem oldest = std::move(doubted.front());
    doubted.pop_front();
    OnOutOfRange(std::move(oldest));
  }
  if (!late.empty()) AdmitLate();
  if (starts->CanBeginAnother()) AskToRejoin(starts->why());
  AskForSamples();
  auto ends = intake->HighWatermarks();
  if (!ends.empty()) sink->OnHighWatermark(std::move(ends));
}

void KafkaSource::Impl::OnCommitReport(CommitReport report) {
  const bool ok = report.result == CommitResult::kCommitted;
  if (!ok) {
    health.Note(locking::Severity::kWarn,
                report.result == CommitResult::kRejected ? "commit_rejected" : "commit_failed",
                fmt::format("offsets of {} partition(s) were not committed: {}",
                            report.offsets.size(), report.why));
  }
  if (report.took > Nanos::zero()) observer->OnCommit(report.result, report.took);
  sink->OnCommitted(std::move(report.offsets), ok ? std::optional(report.sent) : std::nullopt);
}

// The close runs in librdkafka's own time (it talks to the coordinator), but not for ever: where no
// broker answers, the member is left to its session timeout. A subscription that waits for the end
// of a rebalance is withdrawn first: librdkafka 2.0.2 would take it up after the close has taken
// the one before it down, and abort the process on what it finds then.
void KafkaSource::Impl::Close() {
  if (resubscribed) rd_kafka_unsubscribe(consumer.get());
  const rdkafka::Queue events(rd_kafka_queue_new(consumer.get()));
  const auto end = Clock::now() + kCloseLimit;
  const rdkafka::Failure refused(rd_kafka_consumer_close_queue(consumer.get(), events.get()));
  // Answered before the close, the member would join once more, and its leaving wait for all
  // others.
  if (awaited) rd_kafka_assign(consumer.get(), nullptr);
  while (refused == nullptr && rd_kafka_consumer_closed(consumer.get()) == 0) {
    const rdkafka::Message message(
        rd_kafka_consume_queue(events.get(), static_cast<int>(kTurn.count())));
    if (Clock::now() < end) continue;
    observer->OnNote(
        locking::Severity::kWarn, "leave_group_timeout",
        "the group's coordinator did not answer; this member ends by its session timeout");
    break;
  }
  reader.reset();
  intake->Close();
  starts.reset();
  commits.reset();
  health.SetGroup({PartPhase::kDown, "stopped"});
}

KafkaSource::KafkaSource(const KafkaOptions& options, std::string client_id, SourceSink* sink,
                         ConsumerObserver* observer, SourceExtras extras)
    : impl_(std::make_unique<Impl>(options, std::move(client_id), sink, observer,
                                   std::move(extras))) {}

KafkaSource::~KafkaSource() {
  Stop();
  Join();
}

tl::expected<void, Error> KafkaSource::Start() { return impl_->Start(); }

void KafkaSource::Pause(std::vector<PartitionIndex> partitions, AssignmentEpoch epoch) {
  impl_->Post([&] { impl_->commands.push_back({std::move(partitions), true, epoch}); });
}

void KafkaSource::Resume(std::vector<PartitionIndex> partitions, AssignmentEpoch epoch) {
  impl_->Post([&] { impl_->commands.push_back({std::move(partitions), false, epoch}); });
}

void KafkaSource::OnRoom() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->room_came = true;
  }
  impl_->wake.notify_all();
}

void KafkaSource::Commit(std::vector<PartitionOffset> offsets) {
  impl_->Post(
      [&] { impl_->to_commit.insert(impl_->to_commit.end(), offsets.begin(), offsets.end()); });
}

std::shared_ptr<const GroupMetadata> KafkaSource::MetadataOf(AssignmentEpoch epoch) const {
  const std::lock_guard lock(impl_->mutex);
  return epoch == impl_->metadata_epoch ? impl_->metadata : nullptr;
}

void KafkaSource::Stop() {
  impl_->Post([this] { impl_->stopping = true; });
}

void KafkaSource::Join() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace fencepost::consumer
