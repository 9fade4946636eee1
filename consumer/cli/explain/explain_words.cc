#include "consumer/cli/explain/explain_words.h"

#include <fmt/format.h>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/record/identity.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

std::string Cannot(const Error& error) { return "not known: " + error.Line(); }

std::string RecordLine(const Facts& facts) {
  if (!*facts.record) return Cannot(facts.record->error());
  const auto* found = Found(facts.record);
  if (found == nullptr) return "not there";
  const consumer::Record& record = found->record;
  std::string text;
  if (record.timestamp) {
    const locking::WallTime at(*record.timestamp);
    text = fmt::format("of {} ({}), ", MomentText(at), AgeText(at, facts.now));
  }
  text += "key " + Quoted(record.key) + ", ";
  text += record.value ? fmt::format("a value of {} bytes", record.value->size())
                       : "no value (a tombstone)";
  const std::size_t headers = record.headers.size();
  return text + fmt::format(", {} header{}", headers, headers == 1 ? "" : "s");
}

std::string RangeLine(const Facts& facts) {
  const auto& range = *facts.range;
  if (!range) return Cannot(range.error());
  if (range->first == range->end) {
    return fmt::format("empty; the next record will be at offset {}", range->end);
  }
  return fmt::format("holds offsets {} to {}", range->first, range->end - 1);
}

std::string GroupLine(const Facts& facts) {
  const std::string& group = facts.options.kafka.group;
  if (!*facts.committed) return fmt::format("{}: {}", group, Cannot(facts.committed->error()));
  const auto* committed = Found(facts.committed);
  if (committed == nullptr) {
    return fmt::format("{} has committed nothing of this partition", group);
  }
  return fmt::format("{} has committed offset {}: it is {}past this record", group, *committed,
                     facts.position->offset < *committed ? "" : "not ");
}

std::string IdentityLine(const Facts& facts) {
  if (!facts.no_id.empty()) return Printable(facts.no_id);
  if (facts.id.empty()) return "not known without the record";
  std::string text = "id " + Printable(facts.id, 600);
  if (facts.crc) text += fmt::format(", checksum {:016x}", *facts.crc);
  return text;
}

// What a worker leaves at the nodes once the ledger has its record.
bool LeftBehind(const Facts& facts) {
  return LockBlock(facts.options) == 1 && Found(facts.row) != nullptr;
}

std::string NodeLine(const NodeFacts& node, bool left_behind) {
  const bool noted = left_behind && node.state == NodeState::kHeld;
  return fmt::format(
      "{}  {}  {}", node.letter, node.address,
      NodeText(node, noted ? ", by a lease that was left behind: the ledger has its row" : ""));
}

std::string LedgerLine(const Facts& facts) {
  if (FinalityOf(facts.options.output) != consumer::Finality::kLedger) {
    return fmt::format("none: the output is {}", OutputName(facts.options.output));
  }
  if (!facts.row) return "not asked: the id is not known";
  if (!*facts.row) return Cannot(facts.row->error());
  if (!**facts.row) return "no row of this id";
  const consumer::LedgerEntry& row = *Found(facts.row);
  if (row.token == locking::Token()) {
    return fmt::format("row of {} by {}, from {}{}: nothing was written for it", row.completed_at,
                       Printable(row.worker), Printable(row.source),
                       row.crc ? fmt::format(", checksum {:016x}", *row.crc) : ", a dead letter");
  }
  if (!row.crc) {
    return fmt::format(
        "among the done offsets of its partition, last written at {} by {} under "
        "token {}",
        row.completed_at, Printable(row.worker), row.token.value());
  }
  return fmt::format("row of {} by {}, from {}, under token {}, checksum {:016x}", row.completed_at,
                     Printable(row.worker), Printable(row.source), row.token.value(), *row.crc);
}

std::vector<std::string> LetterLines(const Facts& facts) {
  if (!facts.letters) return {"no dead_letter section"};
  if (!*facts.letters) return {Cannot(facts.letters->error())};
  std::vector<std::string> lines;
  for (const StoredLetter& letter : **facts.letters) {
    lines.push_back(fmt::format("{} of {}, from {}: {}: {}", letter.at().Text(),
                                Printable(letter.failed_at), Printable(letter.origin.Text()),
                                Printable(letter.error_class), Printable(letter.error)));
  }
  if (lines.empty()) lines.push_back("none in " + facts.options.dead_letter->topic);
  if (facts.letters_partly) {
    lines.push_back("the topic was too long to be read to its end: fencepost dlq list " +
                    facts.file + " --id …");
  }
  return lines;
}

std::vector<std::string> DifferenceLines(const Facts& facts) {
  if (!facts.difference) return {};
  if (!*facts.difference) return {Cannot(facts.difference->error())};
  return **facts.difference;
}

nlohmann::json NodeJson(const NodeFacts& node) {
  static constexpr std::string_view kNames[] = {"unreachable", "held", "done", "free", "nothing"};
  nlohmann::json json = {{"node", std::string(1, node.letter)},
                         {"address", node.address},
                         {"state", kNames[static_cast<std::size_t>(node.state)]},
                         {"quarantined", node.quarantined}};
  // As text: beyond 2^53 a JSON number is not exact for everyone.
  if (node.token) json["token"] = std::to_string(node.token.value());
  if (node.token) json["drawn"] = MomentText(node.token.wall());
  if (node.state == NodeState::kDone) json["checksum"] = fmt::format("{:016x}", node.crc);
  if (node.state == NodeState::kDone || node.state == NodeState::kHeld) {
    json["rest_ms"] = node.rest.count();
  }
  if (!node.problem.empty()) json["problem"] = node.problem;
  return json;
}

nlohmann::json ErrorJson(const Error& error) { return {{"error", JsonOf(error.Line())}}; }

nlohmann::json KafkaJson(const Facts& facts) {
  nlohmann::json json = nlohmann::json::object();
  if (const auto* range = Known(facts.range)) {
    json = {{"first", range->first}, {"end", range->end}};
  } else if (facts.range) {
    json = ErrorJson(facts.range->error());
  }
  if (Known(facts.committed) != nullptr) {
    json["committed"] = nullptr;
    if (const auto* committed = Found(facts.committed)) json["committed"] = *committed;
  }
  if (facts.failing) {
    json["failing"] = {{"attempts", facts.failing->attempts},
                       {"last", MomentText(locking::WallTime(facts.failing->last))},
                       {"class", facts.failing->why},
                       {"alone_ms", facts.failing->alone.count()},
                       {"unavailable", facts.unavailable},
                       {"others", facts.others_fail}};
  }
  if (Known(facts.record) == nullptr) return json;
  json["record"] = nullptr;
  if (const auto* found = Found(facts.record)) {
    const consumer::Record& record = found->record;
    json["record"] = {{"timestamp", nullptr},
                      {"key", JsonOf(record.key)},
                      {"value_bytes", nullptr},
                      {"headers", record.headers.size()}};
    if (record.timestamp) {
      json["record"]["timestamp"] = MomentText(locking::WallTime(*record.timestamp));
    }
    if (record.value) json["record"]["value_bytes"] = record.value->size();
  }
  return json;
}

nlohmann::json LedgerJson(const Facts& facts) {
  if (!facts.row) return nullptr;
  if (!*facts.row) return ErrorJson(facts.row->error());
  const auto* row = Found(facts.row);
  if (row == nullptr) return {{"row", nullptr}};
  return {{"row",
           {{"completed_at", row->completed_at},
            {"worker", JsonOf(row->worker)},
            {"source", JsonOf(row->source)},
            {"token", std::to_string(row->token.value())},
            {"checksum", row->crc ? nlohmann::json(fmt::format("{:016x}", *row->crc))
                                  : nlohmann::json(nullptr)}}}};
}

nlohmann::json LettersJson(const Facts& facts) {
  if (!facts.letters) return nullptr;
  if (!*facts.letters) return ErrorJson(facts.letters->error());
  nlohmann::json letters = nlohmann::json::array();
  for (const StoredLetter& letter : **facts.letters) {
    letters.push_back({{"at", letter.at().Text()},
                       {"from", JsonOf(letter.origin.Text())},
                       {"class", JsonOf(letter.error_class)},
                       {"error", JsonOf(letter.error)},
                       {"failed_at", JsonOf(letter.failed_at)}});
  }
  return letters;
}

// By PositionFrom.
constexpr std::string_view kSources[] = {"", " (as its id says)", " (as its ledger row says)",
                                         " (as its dead letter says)",
                                         " (as the group's offsets say)"};

}  // namespace

std::vector<std::string> FactLines(const Facts& facts) {
  std::vector<std::string> lines;
  const auto add = [&lines](std::string_view name, const std::string& text) {
    lines.push_back(fmt::format("  {:<11} {}", name, text));
  };
  if (facts.position) {
    add("position",
        facts.position->Text().append(kSources[static_cast<std::size_t>(facts.position_from)]));
    add("record", RecordLine(facts));
    add("partition", RangeLine(facts));
    add("group", GroupLine(facts));
  } else {
    add("position", "not known: an id does not say where its record is");
  }
  if (!facts.filtered.empty()) add("when", "filtered: " + Printable(facts.filtered, 600));
  add("identity", IdentityLine(facts));
  if (facts.nodes.empty()) {
    add("lock", "not asked: the id is not known");
  } else {
    add("lock", Printable(facts.lock, 700) +
                    (LockBlock(facts.options) > 1 ? ", of a block of offsets" : ""));
  }
  for (const NodeFacts& node : facts.nodes) add("", NodeLine(node, LeftBehind(facts)));
  add("ledger", LedgerLine(facts));
  std::string_view name = "difference";
  for (const std::string& line : DifferenceLines(facts)) add(std::exchange(name, ""), line);
  name = "dead letter";
  for (const std::string& line : LetterLines(facts)) add(std::exchange(name, ""), line);
  if (!facts.worker.empty()) add("worker", Printable(facts.worker, 600));
  return lines;
}

nlohmann::json FactsJson(const Facts& facts) {
  nlohmann::json json = {{"pipeline", facts.options.name},
                         {"group", facts.options.kafka.group},
                         {"position", nullptr},
                         {"id", nullptr},
                         {"checksum", nullptr},
                         {"kafka", KafkaJson(facts)},
                         {"ledger", LedgerJson(facts)},
                         {"dead_letters", LettersJson(facts)},
                         {"lock", nlohmann::json::array()}};
  if (facts.position) json["position"] = facts.position->Text();
  if (!facts.id.empty()) json["id"] = JsonOf(facts.id);
  if (!facts.filtered.empty()) json["filtered"] = JsonOf(facts.filtered);
  if (!facts.no_id.empty()) json["no_id"] = JsonOf(facts.no_id);
  if (!facts.no_row.empty()) json["no_row"] = JsonOf(facts.no_row);
  if (!facts.worker.empty()) json["worker"] = JsonOf(facts.worker);
  if (facts.crc) json["checksum"] = fmt::format("{:016x}", *facts.crc);
  if (const auto* difference = Known(facts.difference)) json["difference"] = *difference;
  for (const NodeFacts& node : facts.nodes) json["lock"].push_back(NodeJson(node));
  return json;
}

}  // namespace fencepost::cli
