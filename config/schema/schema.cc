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
constexpr auto kObserve = [](auto& o) { return &o.observe; };
constexpr auto kTraces = [](auto& o) { return &o.observe.traces; };
constexpr auto kTiming = [](auto& o) { return &o.lock.lock; };
constexpr auto kLock = [](auto& o) { return &o.lock; };
constexpr auto kRedis = [](auto& o) { return &o.lock.redis; };
constexpr auto kProcessing = [](auto& o) { return &o.processing; };

std::vector<Key> TopKeys() {
  const KeysOf top("", kTop);
  return {
      top("version", "Version of this format.",
          {.type = T::kInteger, .limits = {{"1", "1"}}, .required = true, .basic = true}),
      top("name", &PipelineOptions::name,
          "Names the pipeline in lock keys, the ledger and metrics: 1 to 63 of `a-z`, `0-9` and "
          "`-`. Changing it makes a new pipeline that remembers nothing.",
          {.check = CheckPipelineName, .required = true, .basic = true}),
      top("guarantee",
          OneOf<Guarantee>({{"exactly-once", Guarantee::kExactlyOnce},
                            {"at-least-once", Guarantee::kAtLeastOnce}},
                           kTop, &PipelineOptions::guarantee),
          "The delivery guarantee that the output must provide; a pipeline that cannot keep it is "
          "refused.",
          {.basic = true}),
      top("record_id", At(kTop, &PipelineOptions::identity, &IdentityRule::record_id),
          "What identifies a record: `position` (topic, partition and offset), `key`, "
          "`header:NAME`, `json:/POINTER` or `key:/POINTER`, or a list of these without "
          "`position`. By position, a record that a producer sends again is a new record.",
          {.type = T::kSelector, .or_selectors = true, .basic = true}),
      top("id_content", At(kTop, &PipelineOptions::identity, &IdentityRule::content),
          "What must also match when an id comes again; other content is a conflict. `value`: the "
          "value, compared as JSON where it is JSON, else as bytes. A list: these parts. `none`: "
          "the id alone.",
          {.choices = {"value", "none"}, .or_selectors = true}),
      top("when", At(kTop, &PipelineOptions::filter),
          "The records that the pipeline is about; others are finished without id, lock, handler "
          "or output. A jq program: its first result is neither false nor null. Or a list that "
          "holds as a whole: `SELECTOR = TEXT`, `SELECTOR exists`.",
          {.or_texts = true, .lines = true}),
      top("on_id_conflict",
          OneOf<OnBad>(
              {{"dead_letter", OnBad::kDeadLetter}, {"stop", OnBad::kStop}, {"skip", OnBad::kSkip}},
              kTop, &PipelineOptions::on_id_conflict),
          "What happens to the same id with other content. `skip` logs it and counts it in "
          "`fencepost_id_conflicts_total`. With `record_id: position` it always stops.",
          {.default_words = "`dead_letter` where there is a `dead_letter` section, else `skip`"}),
      top("on_bad_record",
          OneOf<OnBad>({{"dead_letter", OnBad::kDeadLetter}, {"stop", OnBad::kStop}}, kTop,
                       &PipelineOptions::on_bad_record),
          "What happens to a record whose id or a required column cannot be extracted.",
          {.default_words = "`dead_letter` where there is a `dead_letter` section, else `stop`",
           .basic = true}),
      top("shutdown_timeout", &PipelineOptions::shutdown_timeout,
          "How long a stop may take to finish the records in flight.", {.limits = {{"1s", "1h"}}}),
  };
}

std::vector<Key> KafkaKeys() {
  const KeysOf kafka("kafka", kKafka);
  const std::vector<Key> cluster = KafkaClusterKeys();
  std::vector<Key> keys = {
      kafka("", "Where records come from.", {.required = true}),
      cluster.front(),
      kafka("topics", &KafkaOptions::topics,
            "Topics to read. One that begins with `^` is a pattern, a POSIX extended regular "
            "expression for the whole name: `^returns-.*`. New topics are found within a minute; "
            "1,000 in all; none that begins with `__`.",
            {.check = CheckTopicOrPattern, .required = true, .by_commas = true, .basic = true}),
      kafka("group", &KafkaOptions::group, "Consumer group.",
            {.default_words = "the pipeline's `name`", .basic = true}),
      kafka(
          "start_from",
          OneOf<StartFrom>({{"earliest", StartFrom::kEarliest}, {"latest", StartFrom::kLatest}},
                           kKafka, &KafkaOptions::start_from),
          "Where to start; used only where the group has no offset on any partition of the topic. "
          "A topic that a pattern finds is read from its beginning, unless the group has no offset "
          "at all.",
          {.basic = true}),
      kafka("commit_interval", &KafkaOptions::commit_interval, "How often offsets are committed.",
            {.limits = {{"10ms", "1m"}}}),
      kafka("static_members", &KafkaOptions::static_members,
            "A worker that restarts under the same name within the session timeout (15 s) keeps "
            "its partitions and interrupts no other worker. Each worker needs a name of its own: "
            "`--worker` or `FENCEPOST_WORKER`."),
      kafka("accept_replay_ids",
            At(kTop, &PipelineOptions::identity, &IdentityRule::accept_replay_ids),
            "The header `fencepost-record-id` of a replayed dead letter is its identity. Only for "
            "topics to which nobody else writes. With `record_id: position` it must be a position, "
            "or the record is bad."),
  };
  Append(keys, {cluster.begin() + 1, cluster.end()});
  keys.push_back(
      kafka("librdkafka", &KafkaOptions::librdkafka,
            "Settings passed to librdkafka, for the producers of dead letters and of the Kafka "
            "output too; some are refused, see below.",
            {.secret = true, .lines = true}));
  return keys;
}

std::vector<Key> LockKeys() {
  const KeysOf lock("lock", kLock);
  const KeysOf redis("lock.redis", kRedis);
  return {
      lock("", "The quorum lock that a worker acquires for each record.", {.required = true}),
      redis("",
            "The lock store. Where the ledger decides (no handler, `jq`, `take` or an `idempotent` "
            "one; no selector `token`), one Redis is enough, which may be managed and fail over. "
            "Elsewhere take three or five.",
            {.required = true}),
      redis("nodes", &locking::RedisOptions::nodes,
            "1, 3, 5 or 7 independent Redis primaries: `HOST:PORT`, `unix:/PATH`, "
            "`redis://[USER[:PASSWORD]@]HOST[:PORT]`, or `rediss://` for TLS. A URL sets login and "
            "TLS of its node, percent-encoded and never printed; the keys below set those of the "
            "others.",
            {.check = CheckLockNode, .required = true, .by_commas = true, .basic = true}),
      redis("username", &locking::RedisOptions::username, "ACL user; with `password`."),
      redis("password", &locking::RedisOptions::password, "Password; an empty one means none.",
            {.empty_text = true}),
      redis("tls", &locking::RedisOptions::tls,
            "Encrypts the connections (TLS 1.2 or later), but for sockets and `redis://` URLs. "
            "`{}`: by the system's CAs. The files are read at the start."),
      redis("tls.ca", &locking::RedisOptions::tls_ca,
            "File with the certificates of the CAs that are trusted, in PEM.",
            {.default_words = "the system's"}),
      redis("tls.certificate", &locking::RedisOptions::tls_certificate,
            "File with the client's certificate and its chain, in PEM; with `key`."),
      redis("tls.key", &locking::RedisOptions::tls_key,
            "File with the client's key, in PEM, without passphrase; with `certificate`."),
      redis("tls.server_name", &locking::RedisOptions::tls_server_name,
            "DNS name or IP address that the nodes' certificates must have.",
            {.default_words = "the host of each node"}),
      redis("timeout", At(kTiming, &locking::LockOptions::node_timeout),
            "Limit of one call to a node.", {.limits = {{"1ms", "10s"}}}),
      lock("ttl", At(kTiming, &locking::LockOptions::ttl),
           "Life of a lease; a watchdog extends it at a third of it. At most the store's `max_ttl` "
           "(30 s, or what its first worker or `locks init --max-ttl` has set).",
           {.limits = {{"100ms", "10m"}}}),
      lock("min_validity", At(kTiming, &locking::LockOptions::min_validity),
           "A fresh lease with less time left is released.", {.limits = {{"1ms", "10m"}}}),
      lock("wait", &LockSection::wait,
           "How long a record waits for its lock before it is parked and tried again.",
           {.limits = {{"1ms", "1d"}}}),
      lock("block", &LockSection::block,
           "How many neighbouring offsets share one lock, for throughput (such as `1024`): only "
           "with `record_id: position` and a ledger or `output.kafka`. A killed worker leaves its "
           "blocks locked until their leases end. All workers need the same value.",
           {.limits = {{"1", "65536"}}, .basic = true}),
      lock(
          "on_unavailable",
          OneOf<OnUnavailable>(
              {{"pause", OnUnavailable::kPause}, {"proceed", OnUnavailable::kProceed}}, kLock,
              &LockSection::on_unavailable),
          "Without a quorum of lock nodes records wait (`pause`) or, only where the ledger decides "
          "(`lock.redis`), `proceed` by it alone: workers may run an `idempotent` handler for one "
          "record at once."),
      lock("max_skew", At(kTiming, &locking::LockOptions::max_skew),
           "Largest tolerated clock difference between workers and lock nodes.",
           {.limits = {{"10ms", "1m"}}}),
      lock("remember_done", At(kTiming, &locking::LockOptions::remember_done),
           "How long the nodes remember that a record is done, without a ledger. Less than the "
           "store's `max_ttl` and 2 × `max_skew` is raised to that. `output.kafka` by position "
           "without `kafka.accept_replay_ids` has no marks.",
           {.default_value = "1h", .limits = {{"1s", "365d"}}}),
  };
}

std::vector<Key> ProcessingKeys() {
  const KeysOf processing("processing", kProcessing);
  return {
      processing("", "How records are worked on."),
      processing(
          "order",
          OneOf<Order>(
              {{"partition", Order::kPartition}, {"key", Order::kKey}, {"none", Order::kNone}},
              kProcessing, &ProcessingOptions::order),
          "Which effects happen in order: those of one partition, those of one key (records "
          "without one have none; an empty key is one), or none. `output.kafka` always keeps the "
          "partition's.",
          {.basic = true}),
      processing("concurrency", &ProcessingOptions::concurrency,
                 "Calls of the handler at the same time.",
                 {.reload = Reload::kLiveOverHttp, .limits = {{"1", "65536"}}, .basic = true}),
      processing(
          "max_in_flight", &ProcessingOptions::max_in_flight,
          "Unfinished records that a worker holds at a time.",
          {.default_words = "`4096`; with `output.kafka` two transactions: 2 × `max_records`",
           .limits = {{"1", "1000000"}}}),
      processing("max_in_flight_bytes", &ProcessingOptions::max_in_flight_bytes,
                 "Bytes that they hold: keys, values, headers, handler answers, dead letters.",
                 {.type = T::kSize, .limits = {{"1KiB", "64GiB"}}}),
      processing("timeout", &ProcessingOptions::timeout, "Limit of one try of a handler.",
                 {.limits = {{"1ms", "1h"}}}),
      processing("revoke_drain", &ProcessingOptions::revoke_drain,
                 "How long a rebalance waits for what is in flight.", {.limits = {{"0s", "2m"}}}),
      processing("stall_after", &ProcessingOptions::stall_after,
                 "If the oldest record in flight makes no progress for this long, it is a stall: "
                 "the log, `/ready` and `/status` say so, and the worker continues.",
                 {.limits = {{"100ms", "7d"}}}),
  };
}

std::vector<Key> LedgerAndObserveKeys() {
  const KeysOf ledger("ledger", kTop);
  const KeysOf observe("observe", kObserve);
  const KeysOf traces("observe.traces", kTraces);
  return {
      ledger("", "The table of what took effect."),
      ledger("keep", &PipelineOptions::ledger_keep,
             "How long the ledger remembers an id at least; later it takes effect again. Rows "
             "whose records the group has not committed stay. By position only dead letters are "
             "forgotten: their own id is not replayed any more.",
             {.default_words = "`forever`",
              .limits = {{"1m", "36500d"}},
              .or_word = "forever",
              .basic = true}),
      observe("", "What can be seen of the worker."),
      observe("http", &ObserveOptions::http,
              "`HOST:PORT` of `/metrics`, `/live`, `/ready`, `/status`; port 0 takes a free one.",
              {.default_words = "no server", .check = CheckListenAddress, .basic = true}),
      observe(
          "advertise", &ObserveOptions::advertise,
          "`HOST:PORT` where others reach this worker's port, for `/fleet` and `fencepost top`. "
          "It becomes part of Kafka's `client.id`, which quotas and brokers' metrics name.",
          {.of_process = true,
           .default_words = "the host that the brokers see, and the port of `http`",
           .check = CheckHostPort}),
      observe("tls",
              "TLS of the HTTP port (1.2 or later). The files are read again when they change.",
              {.of_process = true}),
      observe("tls.certificate", At(kObserve, &ObserveOptions::tls, &PortTls::certificate),
              "File with the port's certificate and its chain, in PEM.",
              {.of_process = true, .required = true}),
      observe("tls.key", At(kObserve, &ObserveOptions::tls, &PortTls::key),
              "File with its key, without passphrase.", {.of_process = true, .required = true}),
      observe("tls.client_ca", At(kObserve, &ObserveOptions::tls, &PortTls::client_ca),
              "File with the CAs of clients: then only who has a certificate of theirs may ask.",
              {.of_process = true}),
      observe(
          "auth",
          "Who may ask the HTTP port: who says the token, or name and password. Others get 401. "
          "`control: token` asks for its own token instead.",
          {.of_process = true}),
      observe("auth.bearer", At(kObserve, &ObserveOptions::auth, &PortAuth::bearer),
              "A token, without the word Bearer.", {.of_process = true, .check = CheckBearer}),
      observe("auth.basic", "A user and a password, as browsers ask for.", {.of_process = true}),
      observe("auth.basic.username", At(kObserve, &ObserveOptions::auth, &PortAuth::username),
              "User.", {.of_process = true, .check = CheckBasicUser, .required = true}),
      observe("auth.basic.password", At(kObserve, &ObserveOptions::auth, &PortAuth::password),
              "Its password.", {.of_process = true, .required = true}),
      observe(
          "auth.open", At(kObserve, &ObserveOptions::auth, &PortAuth::open),
          "What anybody may ask, also without a client's certificate: `live`, `ready`. Both are "
          "needed for probes of Kubernetes; `/ready` names brokers and lock nodes.",
          {.of_process = true, .default_words = "nothing", .check = CheckOpenPath}),
      observe("control",
              OneOf<ControlAccess>({{"off", ControlAccess::kOff},
                                    {"loopback", ControlAccess::kLoopback},
                                    {"token", ControlAccess::kToken}},
                                   kObserve, &ObserveOptions::control),
              "Who may POST to `/log/level`, `/pipelines/NAME/pause`, `/resume`, `/explain`, "
              "`/replay`: nobody, this machine (`loopback`), or callers with `Authorization: "
              "Bearer` and `control_token`. "
              "In a process with several files the first one counts.",
              {.of_process = true}),
      observe("control_token", &ObserveOptions::control_token, "With `control: token`.",
              {.of_process = true}),
      observe("log", "The log, on standard error."),
      observe("log.level", &ObserveOptions::log_level, "The lowest level that is logged.",
              {.reload = Reload::kLive,
               .of_process = true,
               .choices = {"debug", "info", "warn", "error"}}),
      observe("log.format", &ObserveOptions::log_format, "One JSON object a line, or text.",
              {.of_process = true, .choices = {"json", "text"}}),
      traces("",
             "Traces of the records, sent by OTLP over HTTP. What is not given here, the standard "
             "variables `OTEL_*` say; an endpoint there switches traces on, too."),
      traces("endpoint", &TraceOptions::endpoint,
             "`http://HOST:4318` or `https://HOST` of a collector; `/v1/traces` is added.",
             {.of_process = true, .default_words = "no traces", .check = CheckCollectorUrl}),
      traces("sample", &TraceOptions::sample,
             "Share of the records that is traced, of those whose headers do not decide it. "
             "Failed, contended and slow ones always are.",
             {.of_process = true, .limits = {{"0", "1"}}}),
      traces("slow", &TraceOptions::slow,
             "A record that took so long, without its waits for others, is slow.",
             {.of_process = true, .limits = {{"1ms", "1h"}}}),
      traces("headers", &TraceOptions::headers, "Headers of each request, such as a token.",
             {.of_process = true, .check = CheckHttpHeader, .secret = true}),
  };
}

// What follows from a key's place and target: its type, its choices, and its default, which is in
// options whose sections on the way to it are given.
void FillIn(Key& key, const std::vector<Key>& all) {
  const bool section =
      std::ranges::any_of(all, [&](const Key& other) { return ParentOf(other.path) == key.path; });
  const bool list = key.to.type == T::kSections;
  if (key.type == T::kText) {
    key.type = section && !list && !key.or_section ? T::kSection : key.to.type;
  }
  if (key.choices.empty()) key.choices = key.to.choices;
  if (!key.choices.empty()) key.type = T::kChoice;
  key.secret = key.secret || key.type == T::kSecret;
  const bool texts = key.type == T::kText || key.type == T::kSecret || key.type == T::kTextMap ||
                     key.type == T::kSelectorMap;
  if (texts && key.check == nullptr && !key.empty_text) key.check = CheckNotEmpty;
  if (!key.to.text || !key.default_value.empty() || key.type == T::kSection) return;
  PipelineOptions options;
  for (const Key& around : all) {
    const Type type = around.to.type;
    const bool chosen = (type == T::kSection || type == T::kSections) && around.to.store;
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
