#include "config/schema/schema.h"

#include <algorithm>

#include "config/schema/checks.h"

namespace fencepost::config {
namespace {

using T = Type;

std::vector<Key> TopKeys() {
  return {
      {.path = "version",
       .type = T::kInteger,
       .help = "Version of this format.",
       .limits = {{"1", "1"}},
       .required = true,
       .basic = true},
      {.path = "name",
       .help = "Names the pipeline in lock keys, the ledger and metrics: 1 to 63 of "
               "`a-z`, `0-9` and `-`. Changing it makes a new pipeline that remembers nothing.",
       .check = CheckPipelineName,
       .required = true,
       .basic = true},
      {.path = "guarantee",
       .type = T::kChoice,
       .help = "The delivery guarantee that the output must provide; a pipeline that cannot keep "
               "it is refused.",
       .default_value = "exactly-once",
       .choices = {"exactly-once", "at-least-once"},
       .basic = true},
      {.path = "record_id",
       .type = T::kSelector,
       .help = "What identifies a record: `position` (topic, partition and offset), `key`, "
               "`header:NAME`, `json:/POINTER` or `key:/POINTER`, or a list of these without "
               "`position`. By position, a record that a producer sends again is a new record.",
       .default_value = "position",
       .or_selectors = true,
       .basic = true},
      {.path = "id_content",
       .type = T::kChoice,
       .help = "What must also match when an id comes again; other content is a conflict. `value`: "
               "the value, compared as JSON where it is JSON, else as bytes. A list: these parts. "
               "`none`: the id alone.",
       .default_value = "value",
       .choices = {"value", "none"},
       .or_selectors = true},
      {.path = "on_id_conflict",
       .type = T::kChoice,
       .help = "What happens to the same id with other content. `skip` logs it and counts it in "
               "`fencepost_id_conflicts_total`. With `record_id: position` it always stops.",
       .default_words = "`dead_letter` where there is a `dead_letter` section, else `skip`",
       .choices = {"dead_letter", "stop", "skip"}},
      {.path = "on_bad_record",
       .type = T::kChoice,
       .help = "What happens to a record whose id or a required column cannot be extracted.",
       .default_words = "`dead_letter` where there is a `dead_letter` section, else `stop`",
       .choices = {"dead_letter", "stop"},
       .basic = true},
      {.path = "shutdown_timeout",
       .type = T::kDuration,
       .help = "How long a stop may take to finish the records in flight.",
       .default_value = "25s",
       .limits = {{"1s", "1h"}}},
  };
}

std::vector<Key> KafkaKeys() {
  return {
      {.path = "kafka", .type = T::kSection, .help = "Where records come from.", .required = true},
      {.path = "kafka.brokers",
       .type = T::kTexts,
       .help = "Where to find the cluster, each `HOST:PORT`.",
       .check = CheckHostPort,
       .required = true,
       .basic = true},
      {.path = "kafka.topics",
       .type = T::kTexts,
       .help = "Topics to read.",
       .check = CheckTopic,
       .required = true,
       .basic = true},
      {.path = "kafka.group",
       .help = "Consumer group.",
       .default_words = "the pipeline's `name`",
       .check = CheckNotEmpty,
       .basic = true},
      {.path = "kafka.start_from",
       .type = T::kChoice,
       .help =
           "Where to start; used only where the group has no offset on any partition of the topic.",
       .default_value = "earliest",
       .choices = {"earliest", "latest"},
       .basic = true},
      {.path = "kafka.commit_interval",
       .type = T::kDuration,
       .help = "How often offsets are committed.",
       .default_value = "1s",
       .limits = {{"10ms", "1m"}}},
      {.path = "kafka.static_members",
       .type = T::kBoolean,
       .help = "A worker that restarts under the same name within the session timeout (15 s) keeps "
               "its partitions and interrupts no other worker. Each worker needs a name of its "
               "own: `--worker` or `FENCEPOST_WORKER`.",
       .default_value = "false"},
      {.path = "kafka.accept_replay_ids",
       .type = T::kBoolean,
       .help = "The header `fencepost-record-id` of a replayed dead letter is its identity. Only "
               "for topics to which nobody else writes. With `record_id: position` it must be a "
               "position, or the record is bad.",
       .default_value = "false"},
      {.path = "kafka.tls",
       .type = T::kSection,
       .help = "Encrypts the connections to the brokers."},
      {.path = "kafka.tls.ca",
       .help = "File with the certificates that are trusted.",
       .check = CheckNotEmpty,
       .required = true},
      {.path = "kafka.tls.certificate",
       .help = "File with the client's certificate; with `key`.",
       .check = CheckNotEmpty},
      {.path = "kafka.tls.key",
       .help = "File with the client's key; with `certificate`.",
       .check = CheckNotEmpty},
      {.path = "kafka.sasl", .type = T::kSection, .help = "Logs in at the brokers."},
      {.path = "kafka.sasl.mechanism",
       .type = T::kChoice,
       .help = "How to log in.",
       .choices = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"},
       .required = true},
      {.path = "kafka.sasl.username",
       .help = "User; required but with OAUTHBEARER.",
       .check = CheckNotEmpty},
      {.path = "kafka.sasl.password",
       .help = "Password; required but with OAUTHBEARER.",
       .secret = true},
      {.path = "kafka.sasl.oauth",
       .type = T::kSection,
       .help = "OAUTHBEARER: tokens come from an OIDC provider by the client credentials grant and "
               "are renewed before they expire. Needs a librdkafka built with OIDC (Debian 13)."},
      {.path = "kafka.sasl.oauth.token_url",
       .help = "The provider's token endpoint. Its certificate is checked against the system's.",
       .check = CheckHttpUrl,
       .required = true},
      {.path = "kafka.sasl.oauth.client_id",
       .help = "The client.",
       .check = CheckNotEmpty,
       .required = true},
      {.path = "kafka.sasl.oauth.client_secret",
       .help = "The client's secret.",
       .required = true,
       .secret = true},
      {.path = "kafka.sasl.oauth.scope",
       .help = "Scopes to ask for, separated by spaces.",
       .check = CheckNotEmpty},
      {.path = "kafka.sasl.oauth.extensions",
       .help = "Further values for the broker, as `NAME=VALUE,…` (such as logicalCluster).",
       .check = CheckNotEmpty},
      {.path = "kafka.librdkafka",
       .type = T::kTextMap,
       .help = "Settings passed to librdkafka, for the producers of dead letters and of the Kafka "
               "output too; some are refused, see below.",
       .check = CheckNotEmpty,
       .secret = true},
  };
}

std::vector<Key> LockKeys() {
  return {
      {.path = "lock",
       .type = T::kSection,
       .help = "The quorum lock that a worker acquires for each record.",
       .required = true},
      {.path = "lock.redis",
       .type = T::kSection,
       .help = "The lock store.",
       .ways = {{"nodes"}},
       .required = true},
      {.path = "lock.redis.nodes",
       .type = T::kTexts,
       .help = "1, 3, 5 or 7 independent Redis primaries: `HOST:PORT`, `unix:/PATH`, "
               "`redis://[USER[:PASSWORD]@]HOST[:PORT]`, or `rediss://` for TLS. A URL sets login "
               "and TLS of its node, percent-encoded and never printed; the keys below set those "
               "of the others.",
       .check = CheckLockNode,
       .basic = true},
      {.path = "lock.redis.username", .help = "ACL user; with `password`.", .check = CheckNotEmpty},
      {.path = "lock.redis.password", .help = "Password; an empty one means none.", .secret = true},
      {.path = "lock.redis.tls",
       .type = T::kSection,
       .help = "Encrypts the connections (TLS 1.2 or later), but for sockets and `redis://` URLs. "
               "`{}`: by the system's CAs. The files are read at the start."},
      {.path = "lock.redis.tls.ca",
       .help = "File with the certificates of the CAs that are trusted, in PEM.",
       .default_words = "the system's",
       .check = CheckNotEmpty},
      {.path = "lock.redis.tls.certificate",
       .help = "File with the client's certificate and its chain, in PEM; with `key`.",
       .check = CheckNotEmpty},
      {.path = "lock.redis.tls.key",
       .help = "File with the client's key, in PEM, without passphrase; with `certificate`.",
       .check = CheckNotEmpty},
      {.path = "lock.redis.tls.server_name",
       .help = "DNS name or IP address that the nodes' certificates must have.",
       .default_words = "the host of each node",
       .check = CheckNotEmpty},
      {.path = "lock.redis.timeout",
       .type = T::kDuration,
       .help = "Limit of one call to a node.",
       .default_value = "200ms",
       .limits = {{"1ms", "10s"}}},
      {.path = "lock.ttl",
       .type = T::kDuration,
       .help = "Life of a lease; a watchdog extends it at a third of it. At most the store's "
               "`max_ttl` (30 s, or what `locks init --max-ttl` has set).",
       .default_value = "10s",
       .limits = {{"100ms", "10m"}}},
      {.path = "lock.min_validity",
       .type = T::kDuration,
       .help = "A fresh lease with less time left is released.",
       .default_value = "2s",
       .limits = {{"1ms", "10m"}}},
      {.path = "lock.wait",
       .type = T::kDuration,
       .help = "How long a record waits for its lock before it is parked and tried again.",
       .default_value = "30s",
       .limits = {{"1ms", "1d"}}},
      {.path = "lock.block",
       .type = T::kInteger,
       .help = "How many neighbouring offsets share one lock, for throughput (such as `1024`): "
               "only with `record_id: position` and a ledger or `output.kafka`. A killed worker "
               "leaves its blocks locked until their leases end. All workers need the same value.",
       .default_value = "1",
       .limits = {{"1", "65536"}},
       .basic = true},
      {.path = "lock.on_unavailable",
       .type = T::kChoice,
       .help = "Without a quorum of lock nodes records wait (`pause`) or `proceed` by the ledger "
               "alone. `proceed` needs a ledger, no selector `token`, and no handler or an "
               "`idempotent` one: workers may run it for one record at once.",
       .default_value = "pause",
       .choices = {"pause", "proceed"}},
      {.path = "lock.max_skew",
       .type = T::kDuration,
       .help = "Largest tolerated clock difference between workers and lock nodes.",
       .default_value = "5s",
       .limits = {{"10ms", "1m"}}},
      {.path = "lock.remember_done",
       .type = T::kDuration,
       .help = "How long the nodes remember that a record is done, without a ledger. Less than the "
               "store's `max_ttl` and 2 × `max_skew` is raised to that. `output.kafka` by position "
               "without `kafka.accept_replay_ids` has no marks.",
       .default_value = "1h",
       .limits = {{"1s", "365d"}}},
  };
}

std::vector<Key> ProcessingKeys() {
  return {
      {.path = "processing", .type = T::kSection, .help = "How records are worked on."},
      {.path = "processing.order",
       .type = T::kChoice,
       .help = "Which effects happen in order: those of one partition, those of one key, or none. "
               "`output.kafka` always keeps the partition's.",
       .default_value = "key",
       .choices = {"partition", "key", "none"},
       .basic = true},
      {.path = "processing.concurrency",
       .type = T::kInteger,
       .help = "Calls of the handler at the same time.",
       .default_value = "64",
       .limits = {{"1", "65536"}},
       .basic = true},
      {.path = "processing.max_in_flight",
       .type = T::kInteger,
       .help = "Unfinished records that a worker holds at a time.",
       .default_value = "4096",
       .default_words = "`4096`; with `output.kafka` two transactions: 2 × `max_records`",
       .limits = {{"1", "1000000"}}},
      {.path = "processing.max_in_flight_bytes",
       .type = T::kSize,
       .help = "Bytes that they hold: keys, values, headers, handler answers, dead letters.",
       .default_value = "64MiB",
       .limits = {{"1KiB", "64GiB"}}},
      {.path = "processing.timeout",
       .type = T::kDuration,
       .help = "Limit of one try of a handler.",
       .default_value = "5s",
       .limits = {{"1ms", "1h"}}},
      {.path = "processing.revoke_drain",
       .type = T::kDuration,
       .help = "How long a rebalance waits for what is in flight.",
       .default_value = "10s",
       .limits = {{"0s", "2m"}}},
      {.path = "processing.stall_after",
       .type = T::kDuration,
       .help = "If the oldest record in flight makes no progress for this long, it is a stall: the "
               "log, `/ready` and `/status` say so, and the worker continues.",
       .default_value = "5m",
       .limits = {{"100ms", "7d"}}},
  };
}

std::vector<Key> LedgerAndObserveKeys() {
  return {
      {.path = "ledger", .type = T::kSection, .help = "The table of what took effect."},
      {.path = "ledger.keep",
       .type = T::kDuration,
       .help = "How long the ledger remembers an id at least; later it takes effect again. Rows of "
               "records that the group has not committed stay. By position the ledger has one row "
               "a partition and forgets nothing.",
       .default_words = "`forever`",
       .limits = {{"1m", "36500d"}},
       .or_word = "forever",
       .basic = true},
      {.path = "observe", .type = T::kSection, .help = "What can be seen of the worker."},
      {.path = "observe.http",
       .help = "`HOST:PORT` of `/metrics`, `/live`, `/ready`, `/status`; port 0 takes a free one.",
       .default_words = "no server",
       .check = CheckListenAddress,
       .basic = true},
      {.path = "observe.control",
       .type = T::kChoice,
       .help = "Who may POST to `/log/level`, `/pipelines/NAME/pause` and `/resume`: nobody, this "
               "machine (`loopback`), or callers with `Authorization: Bearer` and `control_token`. "
               "In a process with several files the first one counts.",
       .default_value = "off",
       .choices = {"off", "loopback", "token"}},
      {.path = "observe.control_token",
       .help = "With `control: token`.",
       .check = CheckNotEmpty,
       .secret = true},
      {.path = "observe.log", .type = T::kSection, .help = "The log, on standard error."},
      {.path = "observe.log.level",
       .type = T::kChoice,
       .help = "The lowest level that is logged.",
       .default_value = "info",
       .choices = {"debug", "info", "warn", "error"}},
      {.path = "observe.log.format",
       .type = T::kChoice,
       .help = "One JSON object a line, or text.",
       .default_value = "json",
       .choices = {"json", "text"}},
  };
}

}  // namespace

std::span<const Key> Schema() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = TopKeys();
    for (const auto& part : {KafkaKeys(), DecodeKeys(), LockKeys(), ProcessingKeys(), HandlerKeys(),
                             OutputKeys(), LedgerAndObserveKeys(), TestKeys()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return keys;
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
