#include "config/read/defaults.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "config/schema/checks.h"

namespace fencepost::config {
namespace {

// What a file does not give, and follows from what it gives.
void FillIn(const Values& values, PipelineOptions& o) {
  if (o.kafka.group.empty()) o.kafka.group = o.name;
  const consumer::OnBad conflict =
      o.dead_letter ? consumer::OnBad::kDeadLetter : consumer::OnBad::kSkip;
  if (!values.Given("on_id_conflict")) o.on_id_conflict = conflict;
  if (!values.Given("on_bad_record") && o.dead_letter) o.on_bad_record = conflict;
  const bool marks_decide = !HasLedger(o) && !SharesLocks(o);
  o.lock.lock.contact = marks_decide ? locking::Contact::kAll : locking::Contact::kQuorum;
  o.lock.lock.quarantine = !LedgerDecides(o);
  o.lock.lock.max_ttl = std::max(o.lock.lock.max_ttl, o.lock.lock.ttl);  // of a new store
  o.lock.lock.remember_done = values.Duration("lock.remember_done");     // the lock's own is less
  auto* const kafka = std::get_if<consumer::KafkaOutputOptions>(&o.output);
  if (kafka == nullptr) return;
  o.processing.order = consumer::Order::kPartition;
  if (!values.Given("processing.max_in_flight")) {
    o.processing.max_in_flight = 2 * kafka->max_records;
  }
  for (auto* part : {&kafka->encode.key, &kafka->encode.value}) {
    const char* const name = part == &kafka->encode.key ? "key" : "value";
    if (part->Needed() && part->subject.empty() && !kafka->topic.empty())
      part->subject = kafka->topic + "-" + name;
  }
  if (!values.Given("output.kafka.encode.registry")) {
    kafka->encode.registry = o.kafka.decode.registry;
  }
}

// Of NAME.kafka.REGION.amazonaws.com, also of a serverless cluster; empty: it is not so named.
std::string RegionOfBroker(std::string_view broker) {
  std::string_view host = broker.substr(0, broker.rfind(':'));
  const auto cut = [&host](std::string_view end) {
    if (!host.ends_with(end)) return false;
    host.remove_suffix(end.size());
    return true;
  };
  if (!cut(".amazonaws.com") && !cut(".amazonaws.com.cn")) return "";
  const std::size_t dot = host.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view region = host.substr(dot + 1);
  host = host.substr(0, dot);
  return host.ends_with(".kafka") || host.ends_with(".kafka-serverless") ? std::string(region) : "";
}

// The region of a cluster whose file does not say it. Its brokers' names are sure; a pod's
// variables tell where the pod is.
void FindRegion(const Environment& environment, consumer::ClusterOptions& cluster) {
  if (cluster.sasl_mechanism != "AWS_MSK_IAM") return;
  const auto take = [&](const std::string& region) {
    if (cluster.sasl_region.empty() && CheckRegion(region).empty()) cluster.sasl_region = region;
  };
  for (const std::string& broker : cluster.brokers) take(RegionOfBroker(broker));
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    take(environment.variable(name).value_or(""));
  }
}

void FindRegions(const Environment& environment, PipelineOptions& o) {
  FindRegion(environment, o.kafka);
  if (auto* const kafka = std::get_if<consumer::KafkaOutputOptions>(&o.output)) {
    FindRegion(environment, kafka->cluster);
  }
  if (o.dead_letter) FindRegion(environment, o.dead_letter->cluster);
}

// Without the quotes that messages put around it.
std::string Bare(const Text& text) {
  const std::string& shown = text.shown;
  const bool quoted = shown.size() >= 2 && shown.front() == '"' && shown.back() == '"';
  return quoted ? shown.substr(1, shown.size() - 2) : shown;
}

// What the file gives, before ${…} is replaced: (path, text), in the schema's order.
std::vector<std::pair<std::string, std::string>> ShownOf(const Values& values) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const Key& key : Schema()) {
    const Entry* entry =
        key.type == Type::kSection || InTests(key.path) ? nullptr : values.Find(key.path);
    if (entry == nullptr) continue;
    std::string shown = entry->texts.empty() ? "[]" : "";
    if (key.type == Type::kSections) shown = fmt::format("{} of them", entry->node->items.size());
    const Text* last = nullptr;  // what one ${…} gives to a list is shown once
    for (const Text& text : entry->texts) {
      const bool again = last != nullptr && text.at == last->at && text.shown == last->shown &&
                         text.value != text.written;
      last = &text;
      if (again) continue;
      if (!shown.empty()) shown += ", ";
      if (!text.name.empty()) shown += text.name + ": ";
      shown += key.secret ? "(not shown)" : Bare(text);
    }
    settings.emplace_back(key.path, std::move(shown));
  }
  return settings;
}

void StoreAll(const Values& values, PipelineOptions& options) {
  for (const Key& key : Schema()) {
    if (!key.to.store || !values.Given(key.path) || key.type == Type::kSections) continue;
    if (key.type == Type::kSection) key.to.store({.texts = {}, .number = true}, options);
    if (const Given* given = values.Find(key.path)) key.to.store(*given, options);
  }
}

}  // namespace

// Each key where its row says. A section comes before its keys.
PipelineOptions OptionsOf(const Values& values, const Environment& environment) {
  PipelineOptions options;
  StoreAll(values, options);
  for (const Key& key : Schema()) {
    for (const Values& one : values.Sections(key.path)) {
      key.to.store({}, options);
      StoreAll(one, options);
    }
  }
  FillIn(values, options);
  FindRegions(environment, options);
  options.shown = ShownOf(values);
  return options;
}

bool HasLedger(const PipelineOptions& options) {
  return options.output.index() != 0 && FinalityOf(options.output) == consumer::Finality::kLedger;
}

bool SharesLocks(const PipelineOptions& options) {
  return options.output.index() != 0 && options.identity.ByPosition() &&
         WriteDecides(FinalityOf(options.output), options.identity);
}

}  // namespace fencepost::config
