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

Trial::Trial(System& system, TrialOptions options)
    : system_(system),
      options_(std::move(options)),
      database_(system.database(options_.database)),
      dead_topic_(options_.name + ".dead"),
      random_(options_.seed),
      table_(std::make_unique<testing::EffectsTable>(database_, options_.name)),
      receiver_(options_.exec ? MakeExecReceiver(folder_) : MakeHttpReceiver()),
      team_({.files = {folder_.File("pipeline.yaml")}}) {
  if (options_.small_disk) {
    disk_ = std::make_unique<testing::SmallDisk>(kDisk);
    if (!disk_->why().empty()) throw std::runtime_error(disk_->why());
  }
  database_.MakeEffects(*table_, disk_.get());
  folder_.Write("pipeline.yaml", Yaml());
  system.kafka().CreateTopic(options_.name, partitions_);
  system.kafka().CreateTopic(dead_topic_, 1);
  NewProducer();
  team_.Start(options_.workers);
  for (int i = 0; i < kFirst; ++i) Send();
  producer_->Flush();
  testing::RequireWithin(
      kStart, [&] { return table_->Count() >= orders_ && team_.AllReady(); },
      fmt::format("the first records of {}; {}", options_.name, team_.Tails()));
}

Trial::~Trial() = default;

std::string Trial::Yaml() const {
  testing::PipelineText text;
  text.name = text.topic = options_.name;
  text.brokers = system_.kafka_proxy().address();
  text.nodes = system_.node_list();
  text.login = ", timeout: 300ms";
  text.ttl = fmt::format("{}ms", kTtl.count());
  text.min_validity = "300ms";
  text.max_skew = fmt::format("{}ms", kMaxSkew.count());
  if (options_.by_position) {
    text.record_id = "position";
    text.block = "64";
  }
  text.session_ms = static_cast<int>(kSession.count());
  text.heartbeat_ms = 400;
  // An answer to JoinGroup is awaited for max.poll.interval.ms, also from a peer that is gone.
  text.librdkafka =
      ", socket.timeout.ms: 10000, reconnect.backoff.max.ms: 500, max.poll.interval.ms: 30000";
  text.more =
      "processing: {order: key, concurrency: 16, max_in_flight: 256, timeout: 1s,"
      " revoke_drain: 5s}\n"
      "retry: {backoff: {initial: 20ms, max: 500ms}}\n"
      "shutdown_timeout: 15s\n" +
      fmt::format("dead_letter: {{topic: {}}}\n", dead_topic_) + receiver_->HandlerYaml();
  text.output =
      "output:\n" + database_.Output(options_.name) +
      "    table: effects\n"
      "    columns: {order_id: json:/order_id, amount: json:/amount, source_partition: partition,"
      " source_offset: offset, fence: token}\n";
  return text.Yaml();
}

// One record in twenty is an earlier order once more, half of those in another partition. By
// position each would take effect.
void Trial::Send() {
  const auto draw = [this](std::size_t below) { return static_cast<int>(random_() % below); };
  std::pair<int, int> sent{orders_, draw(static_cast<std::size_t>(partitions_))};
  if (draw(20) == 0 && !recent_.empty() && !options_.by_position) {
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
  if (now < next_feed_) return;
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

void Trial::NoteCommitted() {
  committed_ = system_.kafka().admin().CommittedOffsets(options_.name, options_.name);
}

bool Trial::Finished() {
  return testing::CommittedToTheEnd(system_.kafka(), options_.name, options_.name);
}

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

History Trial::Collect() {
  History history;
  history.orders = orders_;
  if (options_.moves) history.moved_from = committed_;
  const std::string& bootstrap = system_.kafka().bootstrap();
  for (const auto& record : testing::ReadTopic(bootstrap, options_.name)) {
    history.sent.push_back({OrderIn(record.value.value()),
                            {record.partition, record.offset},
                            record.key.value_or("")});
  }
  for (const auto& record : testing::ReadTopic(bootstrap, dead_topic_)) {
    const Place place{std::stoi(record.Header("fencepost-partition").value()),
                      std::stoll(record.Header("fencepost-offset").value())};
    history.dead[place] = OrderIn(record.value.value());
  }
  history.effects = database_.ReadEffects(*table_);
  history.calls = receiver_->Calls();
  testing::KafkaAdmin& admin = system_.kafka().admin();
  const auto offsets = [&] {  // a busy broker may be without its leaders for a moment
    try {
      history.ends = admin.EndOffsets(options_.name);
      history.committed = admin.CommittedOffsets(options_.name, options_.name);
    } catch (const std::runtime_error&) {
      return false;
    }
    return !history.ends.empty();
  };
  testing::RequireWithin(kStart, offsets, "the offsets of the topic and of the group");
  if (history.sent.size() != static_cast<std::size_t>(produced_)) {
    throw std::runtime_error(
        fmt::format("{} records were sent, the topic has {}", produced_, history.sent.size()));
  }
  return history;
}

void Trial::DropAll() {
  system_.kafka().admin().DeleteTopic(options_.name);
  system_.kafka().admin().DeleteTopic(dead_topic_);
  database_.Drop(options_.name);
}

}  // namespace fencepost::matrix
