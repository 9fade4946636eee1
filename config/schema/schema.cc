#include "config/schema/schema.h"

#include <algorithm>

#include "config/schema/checks.h"
#include "config/text/scalar.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options
using T = Type;

constexpr auto kTop = [](auto& o) { return &o; };
constexpr auto kKafka = [](auto& o) { return &o.kafka; };
constexpr auto kLock = [](auto& o) { return &o.lock; };
constexpr auto kRedis = [](auto& o) { return &o.lock.redis; };
constexpr auto kProcessing = [](auto& o) { return &o.processing; };

std::vector<Key> TopKeys() {
  return {
      {.path = "version",
       .type = T::kInteger,
       .help = "Version of this format.",
       .limits = {{"1", "1"}},
       .required = true,
       .basic = true},
      {.path = "name",
       .to = At(kTop, &PipelineOptions::name),
       .help = "Names the pipeline in lock keys, the ledger and metrics: 1 to 63 of `a-z`, `0-9` "
               "and `-`. Changing it makes a new pipeline that remembers nothing.",
       .check = CheckPipelineName,
       .required = true,
       .basic = true},
      {.path = "guarantee",
       .to = OneOf<Guarantee>(
           {{"exactly-once", Guarantee::kExactlyOnce}, {"at-least-once", Guarantee::kAtLeastOnce}},
           kTop, &PipelineOptions::guarantee),
       .help = "The delivery guarantee that the output must provide; a pipeline that cannot keep "
               "it is refused.",
       .basic = true},
      {.path = "record_id",
       .to = At(kTop, &PipelineOptions::identity, &IdentityRule::record_id),
       .type = T::kSelector,
       .help = "What identifies a record: `position` (topic, partition and offset), `key`, "
               "`header:NAME`, `json:/POINTER` or `key:/POINTER`, or a list of these without "
               "`position`. By position, a record that a producer sends again is a new record.",
       .or_selectors = true,
       .basic = true},
      {.path = "id_content",
       .to = At(kTop, &PipelineOptions::identity, &IdentityRule::content),
       .help = "What must also match when an id comes again; other content is a conflict. `value`: "
               "the value, compared as JSON where it is JSON, else as bytes. A list: these parts. "
               "`none`: the id alone.",
       .choices = {"value", "none"},
       .or_selectors = true},
      {.path = "on_id_conflict",
       .to = OneOf<OnBad>(
           {{"dead_letter", OnBad::kDeadLetter}, {"stop", OnBad::kStop}, {"skip", OnBad::kSkip}},
           kTop, &PipelineOptions::on_id_conflict),
       .help = "What happens to the same id with other content. `skip` logs it and counts it in "
               "`fencepost_id_conflicts_total`. With `record_id: position` it always stops.",
       .default_words = "`dead_letter` where there is a `dead_letter` section, else `skip`"},
      {.path = "on_bad_record",
       .to = OneOf<OnBad>({{"dead_letter", OnBad::kDeadLetter}, {"stop", OnBad::kStop}}, kTop,
                          &PipelineOptions::on_bad_record),
       .help = "What happens to a record whose id or a required column cannot be extracted.",
       .default_words = "`dead_letter` where there is a `dead_letter` section, else `stop`",
       .basic = true},
      {.path = "shutdown_timeout",
       .to = At(kTop, &PipelineOptions::shutdown_timeout),
       .help = "How long a stop may take to finish the records in flight.",
       .limits = {{"1s", "1h"}}},
  };
}

std::vector<Key> KafkaKeys() {
  return {
      {.path = "kafka", .help = "Where records come from.", .required = true},
      {.path = "kafka.brokers",
       .to = At(kKafka, &KafkaOptions::brokers),
       .help = "Where to find the cluster, each `HOST:PORT`.",
       .check = CheckHostPort,
       .required = true,
       .basic = true},
      {.path = "kafka.topics",
       .to = At(kKafka, &KafkaOptions::topics),
       .help = "Topics to read.",
       .check = CheckTopic,
       .required = true,
       .basic = true},
      {.path = "kafka.group",
       .to = At(kKafka, &KafkaOptions::group),
       .help = "Consumer group.",
       .default_words = "the pipeline's `name`",
       .basic = true},
      {.path = "kafka.start_from",
       .to = OneOf<StartFrom>({{"earliest", StartFrom::kEarliest}, {"latest", StartFrom::kLatest}},
                              kKafka, &KafkaOptions::start_from),
       .help =
           "Where to start; used only where the group has no offset on any partition of the topic.",
       .basic = true},
      {.path = "kafka.commit_interval",
       .to = At(kKafka, &KafkaOptions::commit_interval),
       .help = "How often offsets are committed.",
       .limits = {{"10ms", "1m"}}},
      {.path = "kafka.static_members",
       .to = At(kKafka, &KafkaOptions::static_members),
       .help = "A worker that restarts under the same name within the session timeout (15 s) keeps "
               "its partitions and interrupts no other worker. Each worker needs a name of its "
               "own: `--worker` or `FENCEPOST_WORKER`."},
      {.path = "kafka.accept_replay_ids",
       .to = At(kTop, &PipelineOptions::identity, &IdentityRule::accept_replay_ids),
       .help = "The header `fencepost-record-id` of a replayed dead letter is its identity. Only "
               "for topics to which nobody else writes. With `record_id: position` it must be a "
               "position, or the record is bad."},
      {.path = "kafka.tls", .help = "Encrypts the connections to the brokers."},
      {.path = "kafka.tls.ca",
       .to = At(kKafka, &KafkaOptions::tls_ca),
       .help = "File with the certificates that are trusted.",
       .required = true},
      {.path = "kafka.tls.certificate",
       .to = At(kKafka, &KafkaOptions::tls_certificate),
       .help = "File with the client's certificate; with `key`."},
      {.path = "kafka.tls.key",
       .to = At(kKafka, &KafkaOptions::tls_key),
       .help = "File with the client's key; with `certificate`."},
      {.path = "kafka.sasl", .help = "Logs in at the brokers."},
      {.path = "kafka.sasl.mechanism",
       .to = At(kKafka, &KafkaOptions::sasl_mechanism),
       .help = "How to log in.",
       .choices = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"},
       .required = true},
      {.path = "kafka.sasl.username",
       .to = At(kKafka, &KafkaOptions::sasl_username),
       .help = "User; required but with OAUTHBEARER."},
      {.path = "kafka.sasl.password",
       .to = At(kKafka, &KafkaOptions::sasl_password),
       .help = "Password; required but with OAUTHBEARER.",
       .secret = true,
       .empty_text = true},
      {.path = "kafka.sasl.oauth",
       .help = "OAUTHBEARER: tokens come from an OIDC provider by the client credentials grant and "
               "are renewed before they expire. Needs a librdkafka built with OIDC (Debian 13)."},
      {.path = "kafka.sasl.oauth.token_url",
       .to = At(kKafka, &KafkaOptions::oauth, &OauthOptions::token_url),
       .help = "The provider's token endpoint. Its certificate is checked against the system's.",
       .check = CheckHttpUrl,
       .required = true},
      {.path = "kafka.sasl.oauth.client_id",
       .to = At(kKafka, &KafkaOptions::oauth, &OauthOptions::client_id),
       .help = "The client.",
       .required = true},
      {.path = "kafka.sasl.oauth.client_secret",
       .to = At(kKafka, &KafkaOptions::oauth, &OauthOptions::client_secret),
       .help = "The client's secret.",
       .required = true,
       .secret = true,
       .empty_text = true},
      {.path = "kafka.sasl.oauth.scope",
       .to = At(kKafka, &KafkaOptions::oauth, &OauthOptions::scope),
       .help = "Scopes to ask for, separated by spaces."},
      {.path = "kafka.sasl.oauth.extensions",
       .to = At(kKafka, &KafkaOptions::oauth, &OauthOptions::extensions),
       .help = "Further values for the broker, as `NAME=VALUE,…` (such as logicalCluster)."},
      {.path = "kafka.librdkafka",
       .to = At(kKafka, &KafkaOptions::librdkafka),
       .help = "Settings passed to librdkafka, for the producers of dead letters and of the Kafka "
               "output too; some are refused, see below.",
       .secret = true},
  };
}

std::vector<Key> LockKeys() {
  return {
      {.path = "lock",
       .help = "The quorum lock that a worker acquires for each record.",
       .required = true},
      {.path = "lock.redis", .help = "The lock store.", .required = true},
      {.path = "lock.redis.nodes",
       .to = At(kRedis, &locking::RedisOptions::nodes),
       .help = "1, 3, 5 or 7 independent Redis primaries: `HOST:PORT`, `unix:/PATH`, "
               "`redis://[USER[:PASSWORD]@]HOST[:PORT]`, or `rediss://` for TLS. A URL sets login "
               "and TLS of its node, percent-encoded and never printed; the keys below set those "
               "of the others.",
       .check = CheckLockNode,
       .required = true,
       .basic = true},
      {.path = "lock.redis.username",
       .to = At(kRedis, &locking::RedisOptions::username),
       .help = "ACL user; with `password`."},
      {.path = "lock.redis.password",
       .to = At(kRedis, &locking::RedisOptions::password),
       .help = "Password; an empty one means none.",
       .secret = true,
       .empty_text = true},
      {.path = "lock.redis.tls",
       .to = At(kRedis, &locking::RedisOptions::tls),
       .help = "Encrypts the connections (TLS 1.2 or later), but for sockets and `redis://` URLs. "
               "`{}`: by the system's CAs. The files are read at the start."},
      {.path = "lock.redis.tls.ca",
       .to = At(kRedis, &locking::RedisOptions::tls_ca),
       .help = "File with the certificates of the CAs that are trusted, in PEM.",
       .default_words = "the system's"},
      {.path = "lock.redis.tls.certificate",
       .to = At(kRedis, &locking::RedisOptions::tls_certificate),
       .help = "File with the client's certificate and its chain, in PEM; with `key`."},
      {.path = "lock.redis.tls.key",
       .to = At(kRedis, &locking::RedisOptions::tls_key),
       .help = "File with the client's key, in PEM, without passphrase; with `certificate`."},
      {.path = "lock.redis.tls.server_name",
       .to = At(kRedis, &locking::RedisOptions::tls_server_name),
       .help = "DNS name or IP address that the nodes' certificates must have.",
       .default_words = "the host of each node"},
      {.path = "lock.redis.timeout",
       .to = At(kLock, &LockSection::lock, &locking::LockOptions::node_timeout),
       .help = "Limit of one call to a node.",
       .limits = {{"1ms", "10s"}}},
      {.path = "lock.ttl",
       .to = At(kLock, &LockSection::lock, &locking::LockOptions::ttl),
       .help = "Life of a lease; a watchdog extends it at a third of it. At most the store's "
               "`max_ttl` (30 s, or what `locks init --max-ttl` has set).",
       .limits = {{"100ms", "10m"}}},
      {.path = "lock.min_validity",
       .to = At(kLock, &LockSection::lock, &locking::LockOptions::min_validity),
       .help = "A fresh lease with less time left is released.",
       .limits = {{"1ms", "10m"}}},
      {.path = "lock.wait",
       .to = At(kLock, &LockSection::wait),
       .help = "How long a record waits for its lock before it is parked and tried again.",
       .limits = {{"1ms", "1d"}}},
      {.path = "lock.block",
       .to = At(kLock, &LockSection::block),
       .help = "How many neighbouring offsets share one lock, for throughput (such as `1024`): "
               "only with `record_id: position` and a ledger or `output.kafka`. A killed worker "
               "leaves its blocks locked until their leases end. All workers need the same value.",
       .limits = {{"1", "65536"}},
       .basic = true},
      {.path = "lock.on_unavailable",
       .to = OneOf<OnUnavailable>(
           {{"pause", OnUnavailable::kPause}, {"proceed", OnUnavailable::kProceed}}, kLock,
           &LockSection::on_unavailable),
       .help = "Without a quorum of lock nodes records wait (`pause`) or `proceed` by the ledger "
               "alone. `proceed` needs a ledger, no selector `token`, and no handler or an "
               "`idempotent` one: workers may run it for one record at once."},
      {.path = "lock.max_skew",
       .to = At(kLock, &LockSection::lock, &locking::LockOptions::max_skew),
       .help = "Largest tolerated clock difference between workers and lock nodes.",
       .limits = {{"10ms", "1m"}}},
      {.path = "lock.remember_done",
       .to = At(kLock, &LockSection::lock, &locking::LockOptions::remember_done),
       .help = "How long the nodes remember that a record is done, without a ledger. Less than the "
               "store's `max_ttl` and 2 × `max_skew` is raised to that. `output.kafka` by position "
               "without `kafka.accept_replay_ids` has no marks.",
       .default_value = "1h",
       .limits = {{"1s", "365d"}}},
  };
}

std::vector<Key> ProcessingKeys() {
  return {
      {.path = "processing", .help = "How records are worked on."},
      {.path = "processing.order",
       .to = OneOf<Order>(
           {{"partition", Order::kPartition}, {"key", Order::kKey}, {"none", Order::kNone}},
           kProcessing, &ProcessingOptions::order),
       .help = "Which effects happen in order: those of one partition, those of one key, or none. "
               "`output.kafka` always keeps the partition's.",
       .basic = true},
      {.path = "processing.concurrency",
       .to = At(kProcessing, &ProcessingOptions::concurrency),
       .reload = Reload::kLiveOverHttp,
       .help = "Calls of the handler at the same time.",
       .limits = {{"1", "65536"}},
       .basic = true},
      {.path = "processing.max_in_flight",
       .to = At(kProcessing, &ProcessingOptions::max_in_flight),
       .help = "Unfinished records that a worker holds at a time.",
       .default_words = "`4096`; with `output.kafka` two transactions: 2 × `max_records`",
       .limits = {{"1", "1000000"}}},
      {.path = "processing.max_in_flight_bytes",
       .to = At(kProcessing, &ProcessingOptions::max_in_flight_bytes),
       .type = T::kSize,
       .help = "Bytes that they hold: keys, values, headers, handler answers, dead letters.",
       .limits = {{"1KiB", "64GiB"}}},
      {.path = "processing.timeout",
       .to = At(kProcessing, &ProcessingOptions::timeout),
       .help = "Limit of one try of a handler.",
       .limits = {{"1ms", "1h"}}},
      {.path = "processing.revoke_drain",
       .to = At(kProcessing, &ProcessingOptions::revoke_drain),
       .help = "How long a rebalance waits for what is in flight.",
       .limits = {{"0s", "2m"}}},
      {.path = "processing.stall_after",
       .to = At(kProcessing, &ProcessingOptions::stall_after),
       .help = "If the oldest record in flight makes no progress for this long, it is a stall: the "
               "log, `/ready` and `/status` say so, and the worker continues.",
       .limits = {{"100ms", "7d"}}},
  };
}

std::vector<Key> LedgerAndObserveKeys() {
  return {
      {.path = "ledger", .help = "The table of what took effect."},
      {.path = "ledger.keep",
       .to = At(kTop, &PipelineOptions::ledger_keep),
       .help = "How long the ledger remembers an id at least; later it takes effect again. Rows of "
               "records that the group has not committed stay. By position the ledger has one row "
               "a partition and forgets nothing.",
       .default_words = "`forever`",
       .limits = {{"1m", "36500d"}},
       .or_word = "forever",
       .basic = true},
      {.path = "observe", .help = "What can be seen of the worker."},
      {.path = "observe.http",
       .to = At(kTop, &PipelineOptions::observe, &ObserveOptions::http),
       .help = "`HOST:PORT` of `/metrics`, `/live`, `/ready`, `/status`; port 0 takes a free one.",
       .default_words = "no server",
       .check = CheckListenAddress,
       .basic = true},
      {.path = "observe.control",
       .to = OneOf<ControlAccess>({{"off", ControlAccess::kOff},
                                   {"loopback", ControlAccess::kLoopback},
                                   {"token", ControlAccess::kToken}},
                                  kTop, &PipelineOptions::observe, &ObserveOptions::control),
       .of_process = true,
       .help = "Who may POST to `/log/level`, `/pipelines/NAME/pause` and `/resume`: nobody, this "
               "machine (`loopback`), or callers with `Authorization: Bearer` and `control_token`. "
               "In a process with several files the first one counts."},
      {.path = "observe.control_token",
       .to = At(kTop, &PipelineOptions::observe, &ObserveOptions::control_token),
       .of_process = true,
       .help = "With `control: token`.",
       .secret = true},
      {.path = "observe.log", .help = "The log, on standard error."},
      {.path = "observe.log.level",
       .to = At(kTop, &PipelineOptions::observe, &ObserveOptions::log_level),
       .reload = Reload::kLive,
       .of_process = true,
       .help = "The lowest level that is logged.",
       .choices = {"debug", "info", "warn", "error"}},
      {.path = "observe.log.format",
       .to = At(kTop, &PipelineOptions::observe, &ObserveOptions::log_format),
       .of_process = true,
       .help = "One JSON object a line, or text.",
       .choices = {"json", "text"}},
  };
}

// What follows from a key's place and target: its type, its choices, and its default, which is in
// options whose sections on the way to it are given.
void FillIn(Key& key, const std::vector<Key>& all) {
  const bool section =
      std::ranges::any_of(all, [&](const Key& other) { return ParentOf(other.path) == key.path; });
  if (key.type == T::kText) key.type = section ? T::kSection : key.to.type;
  if (key.choices.empty()) key.choices = key.to.choices;
  if (!key.choices.empty()) key.type = T::kChoice;
  const bool texts = key.type == T::kText || key.type == T::kTextMap || key.type == T::kSelectorMap;
  if (texts && key.check == nullptr && !key.empty_text) key.check = CheckNotEmpty;
  if (!key.to.text || !key.default_value.empty() || key.type == T::kSection) return;
  PipelineOptions options;
  for (const Key& around : all) {
    const bool chosen = around.to.type == T::kSection && around.to.store;
    if (chosen && key.path.starts_with(around.path + ".")) around.to.store({}, options);
  }
  key.default_value = key.to.text(options);
  if (key.type == T::kSize) key.default_value = SizeText(options.processing.max_in_flight_bytes);
}

}  // namespace

std::span<const Key> Schema() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = TopKeys();
    for (const auto& part : {KafkaKeys(), DecodeKeys(), LockKeys(), ProcessingKeys(), HandlerKeys(),
                             OutputKeys(), LedgerAndObserveKeys(), TestKeys()}) {
      Append(all, part);
    }
    for (Key& key : all) FillIn(key, all);
    return all;
  }();
  return keys;
}

void Append(std::vector<Key>& keys, std::vector<Key> more) {
  keys.insert(keys.end(), more.begin(), more.end());
}

const Key* FindKey(std::string_view path) {
  const auto keys = Schema();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

bool InTests(std::string_view path) { return path == "tests" || path.starts_with("tests."); }

std::string_view ParentOf(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::vector<std::string_view> ChildrenOf(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : Schema()) {
    if (ParentOf(key.path) == section) names.push_back(NameOf(key.path));
  }
  return names;
}

}  // namespace fencepost::config
