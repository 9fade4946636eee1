// fencepost dlq list|show|replay|purge FILE: the dead letter topic, looked at, sent back, emptied.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/dlq/content_difference.h"
#include "consumer/cli/dlq/dlq_commands.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/record/identity.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;

constexpr std::chrono::seconds kConnectLimit{10};

// Carries a command out on the topic of the file's pipeline.
using CarryOut = int (*)(const PipelineOptions&, LetterTopic&, const LetterRequest&);
int OnTopic(LetterRequest request, CarryOut carry_out) {
  const auto pipelines = LoadPipelines(request.pipeline);
  if (!pipelines) return kUsage;
  const PipelineOptions& options = pipelines->front();
  const std::string& file = request.pipeline.files.front();
  if (!options.dead_letter) {
    return ExitUsage(file +
                     ": there is no dead_letter section, so there are no dead letters; add "
                     "dead_letter: {topic: …}");
  }
  if (carry_out == Purge && !request.all &&
      FinalityOf(options.output) != consumer::Finality::kLedger) {
    return ExitUsage(
        file +
        ": this output has no ledger, so nothing tells which dead letters have taken effect since; "
        "--all deletes them all the same");
  }
  request.filter.pipeline = options.name;
  if (!request.filter.id.empty()) request.filter.id = consumer::StoredId(request.filter.id);
  auto topic = LetterTopic::Open(options, kConnectLimit);
  return topic ? carry_out(options, *topic, request) : ExitFailed(topic.error());
}

// Of an id conflict: how it differs from the record that took effect.
std::vector<std::string> Differences(const PipelineOptions& options, const StoredLetter& letter) {
  if (letter.error_class != kIdConflict || letter.record_id.empty()) return {};
  const auto ledger = LedgerView::Of(options);
  if (ledger == nullptr) return {};
  const auto rows = ledger->Lookup({letter.record_id}, kConnectLimit);
  if (!rows) return {"not known: " + rows.error().Line()};
  if (!rows->front()) return {"not known: the ledger has no row of this id any more"};
  const auto reader = consumer::TopicReader::Make(options.kafka);
  if (!reader) return {"not known: " + reader.error().Line()};
  consumer::Record own = letter.stored.record;
  own.headers = OwnHeaders(own);
  const auto lines = DifferenceFromSource(**reader, rows->front()->source, own, kConnectLimit);
  return lines ? *lines : std::vector{"not known: " + lines.error().Line()};
}

std::string DifferenceText(const PipelineOptions& options, const StoredLetter& letter) {
  std::string text;
  for (const std::string& line : Differences(options, letter)) {
    text += fmt::format("  difference  {}\n", line);
  }
  return text;
}

// kAll: everything of each, partition by partition; else a line, by the times at which they failed.
template <bool kAll>
int Print(const PipelineOptions& options, LetterTopic& topic, const LetterRequest& request) {
  auto ledger = LedgerView::Of(options);  // null: there is none, or it cannot be asked
  std::size_t printed = 0;
  std::vector<std::pair<locking::WallTime, std::string>> lines;
  const auto print = [&](const std::vector<StoredLetter>& letters) -> tl::expected<void, Error> {
    std::vector<LetterEffect> effects(letters.size(), LetterEffect::kUnknown);
    if (ledger != nullptr) {
      if (auto found = EffectsOf(options, *ledger, letters)) {
        effects = std::move(*found);
      } else {
        PrintError("the ledger cannot be asked which of them have taken effect since: " +
                   found.error().Line());
        ledger.reset();
      }
    }
    for (std::size_t i = 0; i < letters.size(); ++i) {
      std::string line = request.json ? LetterJson(letters[i], effects[i], kAll).dump()
                                      : LetterLine(letters[i], effects[i]);
      if (!kAll) {
        lines.emplace_back(letters[i].failed_when.value_or(locking::WallTime()), std::move(line));
      } else if (request.json) {
        fmt::print("{}\n", line);
      } else {
        fmt::print("{}{}{}", printed == 0 ? "" : "\n", LetterText(letters[i], effects[i]),
                   DifferenceText(options, letters[i]));
      }
      ++printed;
    }
    return {};
  };
  const auto seen = topic.Visit(request, print);
  std::ranges::stable_sort(lines, {}, [](const auto& line) { return line.first; });
  for (const auto& [when, line] : lines) fmt::print("{}\n", line);
  if (!seen) return ExitFailed(seen.error());
  if (request.json) return kOk;
  const bool cut = request.limit > 0 && printed == request.limit;
  fmt::print("{}{} dead letter{} in {}{}{}\n", kAll && printed > 0 ? "\n" : "", printed,
             printed == 1 ? "" : "s", options.dead_letter->topic,
             cut ? " (there may be more: --limit)" : "", seen->LeftOut());
  return kOk;
}

// A command, and what the command line fills.
struct LetterCommand {
  CLI::App* command;
  std::shared_ptr<LetterRequest> request;

  LetterCommand(CLI::App& dlq, Run& run, const char* name, const char* help, CarryOut carry_out)
      : command(dlq.add_subcommand(name, help)), request(std::make_shared<LetterRequest>()) {
    AddPipelineFile(*command, request->pipeline);
    LetterFilter& filter = request->filter;
    command->add_option("--class", filter.error_class,
                        "only of this error class: bad_record, id_conflict, timeout, 404, …");
    command->add_option("--id", filter.id, "only of this record id");
    command->add_option("--topic", filter.topic, "only records that came from this topic");
    command->add_option("--partition", filter.partition, "only from this partition of it")
        ->check(CLI::NonNegativeNumber);
    command->add_option("--offset", filter.offset, "only from this offset of it")
        ->check(CLI::NonNegativeNumber);
    AddMoment(*command, "--since", filter.since,
              "only those that failed at this time or later: RFC 3339, or an age like 2h");
    AddMoment(*command, "--until", filter.until, "only those that failed before this time");
    command->callback([&run, request = request, carry_out] {
      run = [request, carry_out] { return OnTopic(*request, carry_out); };
    });
  }
  void AddLimit() const {
    command->add_option("--limit", request->limit, "at most so many")->check(CLI::PositiveNumber);
  }
  void AddExecute() const {
    command->add_flag("--execute", request->execute, "do it; without this, a dry run");
  }
  void AddJson() const { command->add_flag("--json", request->json, "one JSON object a line"); }
};

}  // namespace

void AddDlq(CLI::App& app, Run& run) {
  CLI::App* dlq = app.add_subcommand("dlq", "the dead letters: list, show, replay, purge");
  dlq->require_subcommand(1);
  const LetterCommand list(*dlq, run, "list", "one line each, and a total", Print<false>);
  list.AddLimit();
  list.AddJson();
  const LetterCommand show(*dlq, run, "show", "everything of each: headers, key, value",
                           Print<true>);
  show.AddLimit();
  show.AddJson();
  const LetterCommand replay(
      *dlq, run, "replay",
      "send dead letters back to their topic; a dry run, unless --execute is given", Replay);
  replay.AddLimit();
  replay.AddExecute();
  replay.command->add_flag(
      "--as-new-id", replay.request->as_new_id,
      "as a record of its own: without the old id, and with a new one (of the dead letter's "
      "position) where kafka.accept_replay_ids is true. Letters that were replayed before are "
      "replayed again: choose by the filters");
  replay.command->add_flag("--over-newer", replay.request->over_newer,
                           "also letters whose row has a newer change by now, which they replace");
  replay.command->footer(
      "Publishes dead letters to the topic that they came from, with key, value, own headers and\n"
      "timestamp as they were, and their record id in the header fencepost-record-id.\n"
      "Refused: an id for which something was written since, as the ledger says; where rows are\n"
      "updated or deleted, a letter whose key has a newer change that was written (--over-newer); "
      "an\n"
      "id conflict; and where nothing would recognise a second replay: no record id, or\n"
      "record_id: position without kafka.accept_replay_ids. Exit code 1 if any was refused or\n"
      "failed.\n");
  const LetterCommand purge(
      *dlq, run, "purge",
      "delete dead letters that have taken effect since; a dry run, unless --execute is given",
      Purge);
  purge.AddExecute();
  purge.command->add_flag("--all", purge.request->all,
                          "also those that have not taken effect: they are lost for good");
  purge.command->footer(
      "Deletes dead letters for whose id something was written (list marks them). Kafka deletes "
      "only\n"
      "from the beginning of a partition, so in each all go that stand before the first record\n"
      "that has to stay: one that has not taken effect, of another pipeline, or that the filters\n"
      "leave out. Needs the right to delete records of the topic.\n");
}

}  // namespace fencepost::cli
