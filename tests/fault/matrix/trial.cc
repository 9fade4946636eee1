#include "tests/fault/matrix/trial.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Orders;
using testing::WorkerProcess;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kFeedEvery{100};
constexpr int kCustomers = 17;  // few, so that their chains are long
constexpr int kFirst = 150;
constexpr std::size_t kRemembered = 30;
constexpr seconds kStart{40};
constexpr int kDisk = 96;  // MiB: more than a trial can send

std::string Key(int order) { return fmt::format("customer-{}", order % kCustomers); }

}  // namespace

int OrderIn(const std::string& value) {
  const auto json = nlohmann::json::parse(value);
  return std::stoi(json.at("order_id").get<std::string>().substr(2));
}

std::optional<Pipeline> PipelineNamed(std::string_view name) {
  const auto at = std::find(kPipelineNames.begin(), kPipelineNames.end(), name);
  if (at == kPipelineNames.end()) return std::nullopt;
  return static_cast<Pipeline>(at - kPipelineNames.begin());
}

Trial::Trial(System& system, TrialOptions options)
    : system_(system),
      options_(std::move(options)),
      database_(options_.pipeline == Pipeline::kKafka ? nullptr
                                                      : &system.database(options_.database)),
      dead_topic_(options_.name + ".dead"),
      out_topic_(options_.name + ".out"),
      pipeline_(options_.name),
      random_(options_.seed),
      file_(folder_.File("pipeline.yaml")),
      team_({.files = {file_}}) {
  if (options_.handler == Handler::kHttp) receiver_ = testing::MakeHttpReceiver(options_.batches);
  if (options_.handler == Handler::kExec)
    receiver_ = testing::MakeExecReceiver(folder_, options_.batches);
  if (options_.small_disk) {
    disk_ = std::make_unique<testing::SmallDisk>(kDisk);
    if (!disk_->why().empty()) throw std::runtime_error(disk_->why());
  }
  if (database_ != nullptr) {
    table_ = std::make_unique<testing::EffectsTable>(*database_, options_.name);
    database_->MakeEffects(*table_, disk_.get());
  } else {
    system.kafka().CreateTopic(out_topic_, 1);
  }
  folder_.Write("pipeline.yaml", Yaml());
  system.kafka().CreateTopic(topic(), partitions_);
  system.kafka().CreateTopic(dead_topic_, 1);
  NewProducer();
  team_.Start(options_.workers);
  for (int i = 0; i < kFirst; ++i) Send();
  producer_->Flush();
  testing::RequireWithin(kStart,
                         fmt::format("the first records of {}; {}", options_.name, team_.Tails()),
                         [&] { return Finished() && team_.AllReady(); });
}

Trial::~Trial() = default;

std::string Trial::OutputYaml() const {
  if (database_ == nullptr) {
    // Where a worker comes back under its name, it ends what it left open: nobody waits this long.
    return fmt::format(
        "output:\n  kafka: {{topic: {}, transaction_timeout: {}, headers: {{source_partition:"
        " partition, source_offset: offset, fence: token}}}}\n",
        out_topic_, options_.new_names ? "2s" : "5m");
  }
  return "output:\n" + database_->Output(options_.name) +
         "    effects:\n"
         "      - table: effects\n"
         "        columns: {order_id: json:/order_id, amount: json:/amount, source_partition: "
         "partition,"
         " source_offset: offset, fence: token}\n"
         "      - {table: second_effects, columns: {order_id: json:/order_id, amount: "
         "json:/amount}}\n";
}

std::string Trial::Yaml() const {
  testing::PipelineText text;
  text.name = pipeline_;
  text.topic = topic();
  text.brokers = system_.kafka_proxy().address();
  text.nodes = system_.node_list();
  text.login = ", timeout: 300ms";
  text.ttl = fmt::format("{}ms", kTtl.count());
  text.min_validity = "300ms";
  text.max_skew = fmt::format("{}ms", kMaxSkew.count());
  if (options_.pipeline != Pipeline::kId) text.record_id = "position";
  text.block = options_.block;
  text.session_ms = static_cast<int>(kSession.count());
  text.heartbeat_ms = 400;
  // An answer to JoinGroup is awaited for max.poll.interval.ms, also from a peer that is gone.
  text.librdkafka = ", reconnect.backoff.max.ms: 500, max.poll.interval.ms: 30000";
  if (!options_.new_names)
    text.librdkafka += ", socket.timeout.ms: 10000";  // below a transaction's
  text.more = fmt::format(
                  "processing: {{order: {}, concurrency: 16{}, timeout: 1s,"
                  " revoke_drain: 5s}}\n"
                  "retry: {{backoff: {{initial: 20ms, max: 500ms}}}}\n"
                  "shutdown_timeout: 15s\n"
                  "dead_letter: {{topic: {}}}\n",
                  options_.order, receiver_ ? ", max_in_flight: 256" : "", dead_topic_) +
              (receiver_ ? receiver_->HandlerYaml(pipeline_) : "");
  text.output = OutputYaml();
  return text.Yaml();
}

// One record in twenty is an earlier order once more, half of those in another partition.
void Trial::Send() {
  const auto draw = [this](std::size_t below) { return static_cast<int>(random_() % below); };
  std::pair<int, int> sent{orders_, draw(static_cast<std::size_t>(partitions_))};
  if (draw(20) == 0 && !recent_.empty()) {
    sent = recent_[static_cast<std::size_t>(draw(recent_.size()))];
    if (draw(2) == 0) sent.second = (sent.second + 1) % partitions_;
  } else {
    ++orders_;
    if (recent_.size() < kRemembered) recent_.push_back(sent);
    recent_[static_cast<std::size_t>(sent.first) % recent_.size()] = sent;
  }
  producer_->Send(options_.name, sent.second, Key(sent.first), Orders::Value(sent.first));
  ++produced_;
}

void Trial::Feed() {
  const auto now = Clock::now();
  if (hushed_ || now < next_feed_) return;
  next_feed_ = now + kFeedEvery;
  for (int i = 0; i < options_.records_a_second / 10; ++i) Send();
}

bool Trial::FeedUntil(testing::Deadline limit, const std::function<bool()>& condition) {
  return testing::WaitUntil(limit, [&] {
    Feed();
    return condition();
  });
}

void Trial::NewProducer() {
  if (producer_) producer_->Flush();
  producer_ = std::make_unique<testing::TestProducer>(system_.kafka().bootstrap(), "",
                                                      testing::KafkaConfig{{"linger.ms", "5"}});
}

void Trial::AddPartitions(int more) {
  system_.kafka().admin().AddPartitions(options_.name, partitions_ + more);
  NewProducer();
  partitions_ += more;
}

WorkerProcess* Trial::WorkerOf(pid_t pid) {
  for (WorkerProcess* worker : team_.Running()) {
    if (worker->pid() == pid) return worker;
  }
  return nullptr;
}

std::vector<pid_t> Trial::Pids() {
  std::vector<pid_t> pids;
  for (WorkerProcess* worker : team_.Running()) pids.push_back(worker->pid());
  return pids;
}

void Trial::MakeTopicAgain(int records) {
  NoteSent();
  const auto committed = system_.kafka().admin().CommittedOffsets(group(), topic());
  for (const auto& [where, sent] : sent_) {
    const auto& [log, place] = where;
    const auto partition = static_cast<std::size_t>(place.partition);
    if (log == log_ && place.offset >= committed.at(partition)) maybe_never_.insert(sent.record);
  }
  system_.kafka().admin().DeleteTopic(topic());
  system_.kafka().CreateTopic(topic(), partitions_);
  ++log_;
  recent_.clear();
  NewProducer();
  for (int i = 0; i < records; ++i) Send();
  producer_->Flush();
}

void Trial::BeginAgain(bool other_name) {
  NoteSent();
  for (const testing::Effect& effect : Effects()) {
    const auto sent = sent_.find({log_, effect.record.place});
    if (sent != sent_.end() && sent->second.record == effect.record) {
      maybe_twice_.insert(effect.record);
    }
  }
  if (other_name) pipeline_ += "-again";
  folder_.Write("pipeline.yaml", Yaml());
}

void Trial::NoteCommitted() {
  committed_ = system_.kafka().admin().CommittedOffsets(group(), topic());
}

void Trial::NoteSent() {
  producer_->Flush();
  for (const auto& record : testing::ReadTopic(system_.kafka().bootstrap(), topic())) {
    const testing::Place place{record.partition, record.offset};
    sent_[{log_, place}] = {.record = {OrderIn(record.value.value()), place},
                            .key = record.key.value_or(""),
                            .log = log_};
  }
}

bool Trial::Finished() { return testing::CommittedToTheEnd(system_.kafka(), group(), topic()); }

std::string Trial::Finish(testing::Deadline limit) {
  std::string trouble;
  producer_->Flush();
  for (std::size_t i = 0; i < team_.size(); ++i) {
    WorkerProcess& worker = team_[i];
    if (worker.Running() || forgiven_.contains(&worker)) continue;
    trouble += fmt::format("{} ended by itself with {}\n", worker.name(),
                           worker.Wait(seconds(0)).value_or(-1));
    team_.Add(worker.name());
  }
  const auto done = testing::WaitUntil(limit, [this] { return Finished(); });
  if (!done) {
    trouble += fmt::format("not all was committed within {} s\n", limit.count() / 1000);
  }
  if (!trouble.empty()) trouble += team_.Tails();
  for (WorkerProcess* worker : team_.Running()) {
    if (forgiven_.contains(worker)) worker->Kill();
  }
  return trouble + team_.StopAll(seconds(40));
}

std::vector<testing::Effect> Trial::Effects() {
  if (database_ != nullptr) {
    auto effects = database_->ReadEffects(*table_);
    // Both effects of a record, or none. (Whether there are too many, others judge.)
    for (const char* sql :
         {"SELECT count(*) - (SELECT count(*) FROM second_effects) FROM effects",
          "SELECT count(*) FROM effects WHERE (order_id, amount) NOT IN"
          " (SELECT order_id, amount FROM second_effects)"}) {
      const std::string halves = table_->Value(sql);
      if (halves != "0") throw std::runtime_error(halves + " records have one effect of two");
    }
    return effects;
  }
  std::vector<testing::Effect> effects;
  for (const auto& record : testing::ReadTopic(system_.kafka().bootstrap(), out_topic_)) {
    const auto json = nlohmann::json::parse(record.value.value());
    effects.push_back({.record = {OrderIn(record.value.value()),
                                  {std::stoi(record.Header("source_partition").value()),
                                   std::stoll(record.Header("source_offset").value())}},
                       .amount = json.at("amount").get<std::int64_t>(),
                       .token = std::stoll(record.Header("fence").value())});
  }
  return effects;
}

testing::History Trial::Collect() {
  testing::History history;
  const bool sqlite = database_ != nullptr && database_->kind() == Database::Kind::kSqlite;
  history.by_position = options_.pipeline != Pipeline::kId;
  history.order = sqlite ? "none" : options_.order;
  if (options_.moves) history.moved_from = committed_;
  NoteSent();
  for (const auto& [where, sent] : sent_) history.sent.push_back(sent);
  for (const auto& record : testing::ReadTopic(system_.kafka().bootstrap(), dead_topic_)) {
    history.dead.insert({OrderIn(record.value.value()),
                         {std::stoi(record.Header("fencepost-partition").value()),
                          std::stoll(record.Header("fencepost-offset").value())}});
  }
  history.effects = Effects();
  history.maybe_twice = maybe_twice_;
  history.maybe_never = maybe_never_;
  if (receiver_) history.calls = receiver_->Calls();
  if (options_.pipeline == Pipeline::kPosition) {
    history.ranges = database_->ReadRanges(*table_, pipeline_);
  }
  testing::KafkaAdmin& admin = system_.kafka().admin();
  const auto offsets = [&] {  // a busy broker may be without its leaders for a moment
    try {
      history.ends = admin.EndOffsets(topic());
      history.committed = admin.CommittedOffsets(group(), topic());
    } catch (const std::runtime_error&) {
      return false;
    }
    return !history.ends.empty();
  };
  testing::RequireWithin(kStart, "the offsets of the topic and of the group", offsets);
  if (history.sent.size() != static_cast<std::size_t>(produced_)) {
    throw std::runtime_error(
        fmt::format("{} records were sent, the topic has {}", produced_, history.sent.size()));
  }
  return history;
}

testing::Audit Trial::Judge(const testing::History& history) const {
  testing::Audit audit(history);
  audit.Genuine(receiver_ ? receiver_->factor() : 1).Once().InOrder().DeadLetters();
  if (receiver_) audit.EffectsHaveCalls().TokensGoUp().CallsAreGenuine();
  if (options_.pipeline == Pipeline::kPosition) audit.Ledger();
  return audit.CommittedToTheEnd();
}

void Trial::DropAll() {
  system_.kafka().admin().DeleteTopic(topic());
  system_.kafka().admin().DeleteTopic(dead_topic_);
  if (database_ == nullptr) return system_.kafka().admin().DeleteTopic(out_topic_);
  database_->Drop(options_.name);
}

}  // namespace fencepost::matrix
