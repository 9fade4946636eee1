// output: what it can keep, and what its keys mean together.
#include <algorithm>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/schema/checks.h"
#include "config/text/suggestion.h"
#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/text.h"

namespace fencepost::config {
namespace {

using consumer::HeaderRules;
using consumer::Selector;

void LintGuarantee(const Values& values, Findings& findings) {
  if (!ExactlyOnce(values)) return;
  for (const std::string_view output : {"output.file", "output.stdout"}) {
    if (!values.Given(output)) continue;
    findings.Error(PlaceOfEither(values, "guarantee", output), "guarantee",
                   "guarantee: {} cannot keep exactly-once: it has no transaction that holds the "
                   "effect and the ledger; output.postgres, output.mysql and output.sqlite do; "
                   "otherwise write guarantee: at-least-once",
                   output);
  }
  const Selector* id = values.FindSelector("record_id");
  const bool one_cluster = !values.Given("output.kafka.brokers");
  if (values.Given("output.kafka") && one_cluster && id != nullptr &&
      id->kind != Selector::Kind::kPosition) {
    findings.Warning(values.ValuePlace("record_id"), "guarantee",
                     "guarantee: output.kafka keeps exactly-once for each input position; "
                     "duplicates of this record_id at other positions are suppressed only as long "
                     "as the lock nodes remember (best effort)");
  }
}

void LintNoPosition(const Values& values, Findings& findings) {
  for (const auto& [path, text] : OutputSelectors(values)) {
    if (text->selector.kind != Selector::Kind::kPosition) continue;
    findings.Error(text->at, "selector",
                   "{}{}{}: position is for record_id only; here it is record_id, or topic, "
                   "partition and offset",
                   path, text->name.empty() ? "" : ".", text->name);
  }
}

constexpr std::string_view kDsnPassword = "output.postgres.password";

// In what ${…} puts in, libpq would read @ / : % ' \ and blanks as its own: a password would be
// changed, or cut, and the rest of it taken for a host or an option, and shown.
void LintDsnVariables(const Values& values, Findings& findings) {
  for (const consumer::DsnPart& part : PartsByVariable(values)) {
    if (!part.secret) continue;
    findings.Error(values.ValuePlace(kDsn), "dsn",
                   "{}: its {} is a ${{…}}, which may hold what libpq does not take as it is, such "
                   "as @ / : % ' or a blank; give {}",
                   kDsn, part.keyword,
                   part.keyword == "password" ? kDsnPassword : "the whole dsn by one variable");
  }
}

// What a key says, the dsn does not say too.
void LintDsnKeys(const Values& values, Findings& findings) {
  const auto parts = consumer::PartsOfDsn(values.String(kDsn));
  for (const auto& [name, keyword] : consumer::kDsnKeys) {
    const std::string key = fmt::format("output.postgres.{}", name);
    if (values.Find(key) == nullptr || values.String(key).empty()) continue;
    const auto same = [&](const consumer::DsnPart& part) {
      return part.keyword == keyword || (name == "host" && part.keyword == "hostaddr");
    };
    if (std::ranges::none_of(parts, same)) continue;
    findings.Error(values.ValuePlace(key), "dsn", "{}: {} has a {} too; leave one of the two out",
                   key, kDsn, name);
  }
}

// As libpq reads it. What it stumbles over may be part of a password, and is not told.
void LintDsn(const Values& values, Findings& findings) {
  if (values.Find(kDsn) == nullptr) return;
  const std::string dsn = values.String(kDsn);
  const auto problem = consumer::ProblemOfDsn(dsn);
  if (!problem) {
    LintDsnVariables(values, findings);
    return LintDsnKeys(values, findings);
  }
  std::string what = problem->what;
  if (const auto near = Nearest(problem->option, consumer::DsnOptions())) {
    what = fmt::format("libpq has no option {}; did you mean {}?", problem->option, *near);
  }
  if (consumer::LoginIsAmbiguous(dsn)) {
    what += fmt::format(", or give the password as {}", kDsnPassword);
  }
  findings.Error(values.ValuePlace(kDsn), "dsn", "{}: {}", kDsn, what);
}

void LintFailover(const Values& values, Findings& findings) {
  if (!ExactlyOnce(values) || values.Find(kDsn) == nullptr) return;
  if (consumer::HostsInDsn(values.String(kDsn)) < 2) return;
  findings.Warning(values.ValuePlace(kDsn), "failover",
                   "{} names several hosts: a standby that is not synchronous lacks the newest "
                   "commits when it is promoted (the workers then stop and name the offsets to go "
                   "back to); set synchronous_standby_names on the primary",
                   kDsn);
}

void LintKafkaRecords(const Values& values, Findings& findings) {
  const std::string records = "output.kafka.records";
  if (!values.Given(records)) return;
  for (const std::string_view name : {"topic", "key", "value"}) {
    const std::string path = fmt::format("output.kafka.{}", name);
    if (!values.Given(path)) continue;
    findings.Error(values.KeyPlace(path), "effects",
                   "{}: {} says all of it: put it into one of them", path, records);
  }
  if (values.Given("output.kafka.encode")) {
    findings.Error(
        values.KeyPlace("output.kafka.encode"), "effects",
        "output.kafka.encode: is for the records of one topic: leave one of the two out");
  }
  for (const Values& record : values.Sections(records)) {
    LintWhen(record, records + ".when", findings);
    LintOtherwise(record, records + ".topic", findings);
  }
}

void LintKafkaOutput(const Values& values, Findings& findings) {
  if (!values.Given("output.kafka")) return;
  const consumer::PipelineOptions& o = values.options();
  if (const auto* kafka = std::get_if<consumer::KafkaOutputOptions>(&o.output)) {
    LintOtherCluster(values, "output.kafka", kafka->cluster, findings);
  }
  for (const auto& [path, topic] : OutputTopics(values)) {
    const std::string by = values.Given("output.kafka.brokers") ? "" : ReadBy(values, topic->value);
    if (!by.empty()) {
      findings.Error(topic->at, "loop",
                     "{}: {} is {} kafka.topics: the pipeline would feed itself for ever", path,
                     topic->shown, by);
    } else if (const std::string problem = CheckTopic(topic->value); !problem.empty()) {
      findings.Error(topic->at, "value", "{}: {} {}", path, topic->shown, problem);
    }
  }
  LintKafkaRecords(values, findings);
  for (const Text& header : values.Texts("output.kafka.headers")) {
    if (header.name != HeaderRules::kAll || header.value == HeaderRules::kDrop) continue;
    findings.Error(header.at, "value",
                   "output.kafka.headers: \"*\" is all of the record's own headers, which can only "
                   "be left out: write \"*\": drop");
  }
  if (values.Find("processing.order") != nullptr &&
      values.String("processing.order") != "partition") {
    findings.Warning(values.ValuePlace("processing.order"), "order",
                     "processing.order: output.kafka always keeps the order of the partition; "
                     "write partition, or leave it out");
  }
  const std::int64_t records = values.Number("output.kafka.max_records");
  if (o.processing.max_in_flight < records &&
      !AnyWrong(values, {"output.kafka.max_records", "processing.max_in_flight"})) {
    findings.Warning(values.ValuePlace("processing.max_in_flight"), "in-flight",
                     "processing.max_in_flight ({}) keeps transactions from reaching "
                     "output.kafka.max_records ({})",
                     o.processing.max_in_flight, records);
  }
}

}  // namespace

std::vector<consumer::DsnPart> PartsByVariable(const Values& values) {
  constexpr const char* kMark = "\x1a";  // no file has it
  Environment marks;
  marks.variable = [](const std::string&) { return kMark; };
  marks.read_file = [](const std::string&) { return kMark; };
  const Entry* const dsn = values.Find(kDsn);
  if (dsn == nullptr) return {};
  const auto marked = Expand(dsn->texts.front().written, marks, Lines::kMany);
  auto parts = consumer::PartsOfDsn(marked.value_or(""));
  std::erase_if(parts, [&](const auto& part) { return part.value.find(kMark) == part.value.npos; });
  return parts;
}

std::vector<std::pair<std::string, const Text*>> ChoicesOf(const Values& values,
                                                           const std::string& name) {
  std::vector<std::pair<std::string, const Text*>> choices;
  const std::string of = name + ".of";
  const std::string otherwise = name + ".otherwise";
  for (const Text& text : values.Texts(of)) choices.emplace_back(of, &text);
  if (const Entry* other = values.Find(otherwise)) {
    const Text& text = other->texts.front();
    if (text.value != "bad" && text.value != "skip") choices.emplace_back(otherwise, &text);
  }
  if (const Entry* one = values.Find(name)) choices.emplace_back(name, &one->texts.front());
  return choices;
}

void LintOtherwise(const Values& values, const std::string& name, Findings& findings) {
  constexpr std::string_view kMeanSkip[] = {"skip", "ignore",  "none", "drop", "discard",
                                            "null", "nothing", "no",   "false"};
  const std::string path = name + ".otherwise";
  const Entry* other = values.Find(path);
  if (other == nullptr || other->texts.front().value == "skip") return;
  const Text& text = other->texts.front();
  if (std::ranges::find(kMeanSkip, consumer::Lower(text.value)) == std::end(kMeanSkip)) return;
  findings.Warning(text.at, "effects",
                   "{}: {} is the name of a {} here; for none write skip, for a bad record bad",
                   path, text.shown, NameOf(name));
}

std::vector<std::pair<std::string, const Text*>> OutputTopics(const Values& values) {
  auto topics = ChoicesOf(values, "output.kafka.topic");
  for (const Values& record : values.Sections("output.kafka.records")) {
    const auto more = ChoicesOf(record, "output.kafka.records.topic");
    topics.insert(topics.end(), more.begin(), more.end());
  }
  return topics;
}

void LintOutput(const Values& values, Findings& findings) {
  LintGuarantee(values, findings);
  LintNoPosition(values, findings);
  LintDsn(values, findings);
  LintFailover(values, findings);
  LintEffects(values, findings);
  LintPair(values, "output.mysql.tls.certificate", "output.mysql.tls.key", findings);
  LintKafkaOutput(values, findings);
}

}  // namespace fencepost::config
