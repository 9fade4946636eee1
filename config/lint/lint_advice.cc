// What works, and will hurt: warnings. Each names what silences it: a choice that is written down.
#include <map>

#include <fmt/format.h>

#include "config/lint/lint.h"
#include "config/lint/lint_parts.h"
#include "config/schema/checks.h"
#include "locking/redis/address.h"

namespace fencepost::config {
namespace {

constexpr std::string_view kRule = "advice";
// Addresses that may hold a user and a password, and what to write instead.
constexpr std::pair<std::string_view, std::string_view> kUrls[] = {
    {"lock.redis.nodes", "give lock.redis.username and lock.redis.password"},
    {"kafka.decode.registry.url", "give kafka.decode.registry.username and .password"},
    {"output.kafka.encode.registry.url",
     "give output.kafka.encode.registry.username and .password"},
    {"kafka.sasl.oauth.token_url", "give kafka.sasl.oauth.client_id and .client_secret"},
    {"output.kafka.sasl.oauth.token_url",
     "give output.kafka.sasl.oauth.client_id and .client_secret"},
    {"dead_letter.sasl.oauth.token_url",
     "give dead_letter.sasl.oauth.client_id and .client_secret"},
    {"handler.http.auth.oauth2.token_url",
     "give handler.http.auth.oauth2.client_id and .client_secret"},
    {"handler.http.url", "give handler.http.auth.basic"}};

void AdviseDeadLetters(const Values& values, Findings& findings) {
  if (values.Given("dead_letter") || values.Given("on_bad_record")) return;
  findings.Warning(
      {}, kRule,
      "there is no dead_letter: the first record without an id, or that the output refuses, ends "
      "the pipeline; give dead_letter: {topic: …}, or say on_bad_record: stop");
}

void AdviseRecordId(const Values& values, Findings& findings) {
  if (!HasLedger(values.options()) || values.Given("record_id")) return;
  findings.Warning({}, kRule,
                   "there is no record_id: a record is identified by its position in the topic, "
                   "and what a producer sends again is a new record with an effect of its own; "
                   "give record_id: json:/POINTER, or say record_id: position");
}

void AdviseKeep(const Values& values, Findings& findings) {
  if (!HasLedger(values.options()) || values.options().identity.ByPosition() ||
      values.Given("ledger.keep"))
    return;
  findings.Warning(
      values.KeyPlace("output"), kRule,
      "there is no ledger.keep: the ledger grows by a row for each id, for ever; say how long an "
      "id may come again, as in ledger: {keep: 30d}, or ledger: {keep: forever}");
}

// A call that outlives the lease of a worker that was killed or frozen runs beside the next one's.
constexpr Relation kCallWithinLease{"processing.timeout",
                                    "lock.ttl",
                                    [](auto& a, auto& b) { return a <= b; },
                                    Severity::kWarning,
                                    kRule,
                                    "{} ({}) is above {} ({}): a call of a worker that was killed "
                                    "or frozen may still run when another worker makes it again"};

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

void AdviseNodes(const Values& values, Findings& findings) {
  const auto nodes = values.Texts("lock.redis.nodes");
  if (nodes.size() == 1 && !LedgerDecides(values.options())) {
    findings.Warning(
        nodes.front().at, kRule,
        "lock.redis.nodes: one node is no quorum: while it is away nothing is processed, and a "
        "node that lost its data forgets all locks; take three or five");
  }
  std::map<std::string, const Text*> seen;  // by host
  for (const Text& node : nodes) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address || !address->path.empty()) continue;
    const bool loopback = IsLoopback(address->host);
    // Several servers on one's own machine are how everybody begins; two names of it are a mistake.
    const auto [first, is_new] =
        seen.emplace(loopback ? ":" + address->port : address->host, &node);
    if (is_new) continue;
    const std::string& other = first->second->shown;
    findings.Warning(
        node.at, kRule,
        loopback
            ? fmt::format("lock.redis.nodes: {} and {} are one server: localhost has several names",
                          other, node.shown)
            : fmt::format("lock.redis.nodes: {} and {} are on one host: they fail together, and "
                          "count as two of the quorum",
                          other, node.shown));
  }
}

// What ${…} puts into an address, others read as a part of the address.
void AdviseVariables(const Values& values, Findings& findings) {
  for (const consumer::DsnPart& part : PartsByVariable(values)) {
    const auto key = std::ranges::find(consumer::kDsnKeys, part.keyword,
                                       [](const auto& names) { return names.second; });
    if (part.secret || key == std::end(consumer::kDsnKeys)) continue;
    findings.Warning(values.ValuePlace(kDsn), kRule,
                     "{}: its {} is a ${{…}}, in which libpq reads @ / : % ' and blanks as its "
                     "own; give output.postgres.{}, and output.postgres.password",
                     kDsn, part.keyword, key->first);
  }
  for (const auto& [path, instead] : kUrls) {
    for (const Text& url : values.Texts(path)) {
      const std::string whole = WithoutSelectors(url.written);
      const std::string_view written = std::string_view(whole).substr(0, whole.find('?'));
      const std::size_t at = written.rfind('@');
      const std::size_t scheme = written.find("://");
      if (at == std::string_view::npos || scheme == std::string_view::npos || scheme > at) continue;
      if (written.substr(scheme, at - scheme).find("${") == std::string_view::npos) continue;
      findings.Warning(url.at, kRule,
                       "{}: its user or password is a ${{…}}, in which % and two digits are read "
                       "as one character, and @ / ? # are refused; {}",
                       path, instead);
    }
  }
}

bool IsLocal(std::string_view host) { return IsLoopback(host) || host.starts_with('/'); }

// http:// to another machine.
bool IsPlain(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  return !url.starts_with("[::1]") && !IsLoopback(url.substr(0, url.find_first_of(":/?#")));
}

void AdviseTls(const Values& values, Findings& findings) {
  const consumer::PipelineOptions& o = values.options();
  const auto is_local = [](const std::string& broker) {
    return IsLoopback(std::string_view(broker).substr(0, broker.rfind(':')));
  };
  const auto clusters = ClustersOf(o);
  for (const auto& [section, cluster] : clusters) {
    const std::string sasl = fmt::format("{}.sasl", section);
    if (!values.Given(sasl) || cluster.sasl_mechanism.empty() || cluster.tls ||
        std::ranges::all_of(cluster.brokers, is_local)) {
      continue;
    }
    findings.Warning(values.KeyPlace(sasl), kRule,
                     "{0}.sasl without {0}.tls: login and records cross the network as they are, "
                     "and brokers that want TLS close the connection; {0}.tls: {{}} takes the "
                     "system's CAs",
                     section);
  }
  for (const auto& [section, cluster] : clusters) {
    const std::string url = fmt::format("{}.sasl.oauth.token_url", section);
    if (!values.Given(url) || !IsPlain(cluster.oauth.token_url)) continue;
    findings.Warning(values.ValuePlace(url), kRule,
                     "{}.sasl.oauth.token_url without TLS: the client's secret crosses the network "
                     "as it is; write https://",
                     section);
  }
  const auto* const http = std::get_if<consumer::HttpHandlerOptions>(&o.handler.kind);
  if (http != nullptr && values.Given("handler.http.auth") && IsPlain(http->url)) {
    findings.Warning(values.KeyPlace("handler.http.auth"), kRule,
                     "handler.http.auth without TLS: login and records cross the network as they "
                     "are; write https:// in handler.http.url");
  }
  if (http != nullptr && IsPlain(http->auth.oauth.token_url)) {
    findings.Warning(values.ValuePlace("handler.http.auth.oauth2.token_url"), kRule,
                     "handler.http.auth.oauth2.token_url without TLS: the client's secret crosses "
                     "the network as it is; write https://");
  }
  if (values.Given("observe.auth") && o.observe.tls.certificate.empty() &&
      !IsLoopback(std::string_view(o.observe.http).substr(0, o.observe.http.rfind(':')))) {
    findings.Warning(values.KeyPlace("observe.auth"), kRule,
                     "observe.auth without observe.tls: token and password cross the network as "
                     "they are");
  }
  for (const char* path : {"kafka.decode.registry", "output.kafka.encode.registry"}) {
    const std::string url = fmt::format("{}.url", path);
    const bool login = values.Given(fmt::format("{}.username", path)) ||
                       values.Given(fmt::format("{}.bearer", path)) ||
                       values.Given(fmt::format("{}.oauth2", path));
    if (!login || !IsPlain(values.String(url))) continue;
    findings.Warning(values.ValuePlace(url), kRule,
                     "{} without TLS: the login crosses the network as it is; write https://", url);
  }
  const auto* const mysql = std::get_if<consumer::MysqlOptions>(&o.output);
  if (mysql == nullptr || mysql->tls || IsLocal(mysql->host)) return;
  findings.Warning(values.KeyPlace("output.mysql"), kRule,
                   "output.mysql without tls: whoever is between can ask for the password, and "
                   "read the rows; output.mysql.tls: {{}} takes the system's CAs");
}

}  // namespace

void TellWhatTheLockIsFor(const Values& values, Findings& findings) {
  const consumer::PipelineOptions& o = values.options();
  const bool tokens = !o.handler.outside() || o.handler.idempotent;
  const std::string_view why = !HasLedger(o)                  ? "the output has no ledger"
                               : tokens                       ? "the output writes fencing tokens"
                               : values.Given("handler.http") ? "handler.http is not idempotent"
                                                              : "handler.exec is not idempotent";
  findings.Add(values.KeyPlace("lock.redis"), Severity::kInfo, "lock",
               LedgerDecides(o)
                   ? "the ledger decides, and the lock spares double work: one Redis is enough, "
                     "which may be managed and fail over; no `fencepost locks init` is needed"
                   : fmt::format("the lock counts, since {}: take three or five independent Redis "
                                 "primaries, and make their store by `fencepost locks init`",
                                 why));
}

void Advise(const Values& values, Findings& findings) {
  AdviseDeadLetters(values, findings);
  AdviseRecordId(values, findings);
  AdviseKeep(values, findings);
  if (values.options().handler.outside()) LintRelation(kCallWithinLease, values, findings);
  AdviseNodes(values, findings);
  AdviseVariables(values, findings);
  AdviseTls(values, findings);
}

}  // namespace fencepost::config
