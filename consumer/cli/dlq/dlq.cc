// fencepost dlq list|show|replay|purge FILE: the dead letter topic, looked at, sent back, emptied.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/dlq/content_difference.h"
#include "consumer/cli/dlq/dlq_effects.h"
#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/cli/dlq/dlq_purge.h"
#include "consumer/cli/dlq/dlq_replay.h"
#include "consumer/cli/dlq/dlq_topic.h"
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
constexpr std::chrono::seconds kReadLimit{30};

struct DlqArguments {
  std::string file;
  LetterRequest request;
  bool json = false;
};

// Nothing: it was said why (exit 2). With it the arguments' filter is whole.
std::optional<PipelineOptions> Understand(DlqArguments& arguments) {
  auto pipelines = LoadPipelines({arguments.file});
  if (!pipelines) return std::nullopt;
  PipelineOptions& options = pipelines->front();
  if (!options.dead_letter) {
    PrintError(arguments.file +
               ": there is no dead_letter section, so there are no dead letters; add "
               "dead_letter: {topic: …}");
    return std::nullopt;
  }
  LetterFilter& filter = arguments.request.filter;
  filter.pipeline = options.name;
  if (!filter.id.empty()) filter.id = consumer::StoredId(filter.id);
  return std::move(options);
}

// What a reader of the total should know besides.
std::string LeftOut(const LettersSeen& seen) {
  std::string text;
  if (seen.of_others > 0) text += fmt::format(", {} of other pipelines left out", seen.of_others);
  if (seen.strange == 1) text += ", 1 record in the topic is no dead letter of fencepost";
  if (seen.strange > 1) {
    text += fmt::format(", {} records in the topic are no dead letters of fencepost", seen.strange);
  }
  return text;
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

// Prints letters, some at a time, with what the ledger says of them.
class LetterPrinter {
 public:
  LetterPrinter(const PipelineOptions& options, bool all, bool json)
      : options_(options), all_(all), json_(json), ledger_(LedgerView::Of(options)) {}

  void Add(const StoredLetter& letter) {
    batch_.push_back(letter);
    if (batch_.size() == kLettersAtATime) Flush();
  }

  void Flush() {
    const std::vector<LetterEffect> effects = Effects();
    for (std::size_t i = 0; i < batch_.size(); ++i) Print(batch_[i], effects[i]);
    batch_.clear();
  }

  [[nodiscard]] std::size_t printed() const { return printed_; }

 private:
  std::vector<LetterEffect> Effects() {
    if (ledger_ != nullptr) {
      auto found = EffectsOf(options_, *ledger_, batch_);
      if (found) return std::move(*found);
      PrintError("the ledger cannot be asked which of them have taken effect since: " +
                 found.error().Line());
      ledger_.reset();
    }
    return std::vector<LetterEffect>(batch_.size(), LetterEffect::kUnknown);
  }

  void Print(const StoredLetter& letter, LetterEffect effect) {
    if (json_) {
      fmt::print("{}\n", LetterJson(letter, effect, all_).dump());
    } else if (all_) {
      fmt::print("{}{}{}", printed_ == 0 ? "" : "\n", LetterText(letter, effect),
                 DifferenceText(options_, letter));
    } else {
      fmt::print("{}\n", LetterLine(letter, effect));
    }
    ++printed_;
  }

  const PipelineOptions& options_;
  const bool all_;
  const bool json_;
  std::unique_ptr<LedgerView> ledger_;  // null: there is none, or it cannot be asked
  std::vector<StoredLetter> batch_;
  std::size_t printed_ = 0;
};

int PrintLetters(DlqArguments arguments, bool all) {
  const auto options = Understand(arguments);
  if (!options) return kUsage;
  auto topic = LetterTopic::Open(*options, kConnectLimit);
  if (!topic) return ExitFailed(topic.error());
  LetterPrinter printer(*options, all, arguments.json);
  std::size_t matched = 0;
  const auto seen = topic->Visit(
      arguments.request.filter,
      [&](const StoredLetter& letter) {
        printer.Add(letter);
        return ++matched != arguments.request.limit;
      },
      kReadLimit);
  printer.Flush();
  if (!seen) return ExitFailed(seen.error());
  if (arguments.json) return kOk;
  const std::size_t printed = printer.printed();
  const bool cut = arguments.request.limit > 0 && printed == arguments.request.limit;
  fmt::print("{}{} dead letter{} in {}{}{}\n", all && printed > 0 ? "\n" : "", printed,
             printed == 1 ? "" : "s", options->dead_letter->topic,
             cut ? " (there may be more: --limit)" : "", LeftOut(*seen));
  return kOk;
}

void PrintReplayed(const PipelineOptions& options, const LetterRequest& request,
                   const ReplayCounts& counts) {
  const bool ledger = FinalityOf(options.output) == consumer::Finality::kLedger;
  std::string line =
      fmt::format("{} {}, {} refused", counts.replayed,
                  request.execute ? "replayed" : "would be replayed", counts.refused);
  if (counts.failed > 0) line += fmt::format(", {} failed", counts.failed);
  if (counts.repeated > 0) line += fmt::format(", {} left out", counts.repeated);
  fmt::print("{}\n", line);
  if (!request.execute) fmt::print("nothing was published: --execute does it\n");
  if (counts.replayed == 0) return;
  fmt::print("the producer chooses the partition by the key: it may be another than before\n");
  if (!ledger) {
    fmt::print("this output has no ledger: nothing tells which ids took effect meanwhile\n");
  }
  if (options.identity.accept_replay_ids) {
    fmt::print("an interrupted replay can be run again: every replay carries its id\n");
  } else {
    fmt::print(
        "an interrupted replay can be run again: {}what is still in flight may come twice "
        "(kafka.accept_replay_ids: true would tell by the id)\n",
        ledger ? "what took effect meanwhile is refused; " : "");
  }
}

int ReplayLetters(DlqArguments arguments) {
  const auto options = Understand(arguments);
  if (!options) return kUsage;
  auto topic = LetterTopic::Open(*options, kConnectLimit);
  if (!topic) return ExitFailed(topic.error());
  const auto counts = Replay(*options, *topic, arguments.request);
  if (!counts) {
    std::fflush(stdout);
    return ExitFailed(counts.error());
  }
  PrintReplayed(*options, arguments.request, *counts);
  return counts->refused + counts->failed == counts->done ? kOk : kFailed;
}

int PurgeLetters(DlqArguments arguments) {
  const auto options = Understand(arguments);
  if (!options) return kUsage;
  const bool ledger = FinalityOf(options->output) == consumer::Finality::kLedger;
  if (!ledger && !arguments.request.all) {
    PrintError(arguments.file +
               ": this output has no ledger, so nothing tells which dead letters have taken effect "
               "since; --all deletes them all the same");
    return kUsage;
  }
  auto topic = LetterTopic::Open(*options, kConnectLimit);
  if (!topic) return ExitFailed(topic.error());
  const auto deleted = Purge(*options, *topic, arguments.request);
  if (!deleted) {
    std::fflush(stdout);
    return ExitFailed(deleted.error());
  }
  fmt::print("{} dead letter{} {}deleted\n", *deleted, *deleted == 1 ? "" : "s",
             arguments.request.execute ? "" : "would be ");
  if (!arguments.request.execute) fmt::print("nothing was deleted: --execute does it\n");
  return kOk;
}

std::shared_ptr<DlqArguments> AddLetterOptions(CLI::App& command) {
  auto arguments = std::make_shared<DlqArguments>();
  LetterFilter& filter = arguments->request.filter;
  command.add_option("FILE", arguments->file, "the pipeline file")->required();
  command.add_option("--class", filter.error_class,
                     "only of this error class: bad_record, id_conflict, timeout, 404, …");
  command.add_option("--id", filter.id, "only of this record id");
  command.add_option("--topic", filter.topic, "only records that came from this topic");
  command.add_option("--partition", filter.partition, "only from this partition of it")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--offset", filter.offset, "only from this offset of it")
      ->check(CLI::NonNegativeNumber);
  AddMoment(command, "--since", filter.since,
            "only those that failed at this time or later: RFC 3339, or an age like 2h");
  AddMoment(command, "--until", filter.until, "only those that failed before this time");
  return arguments;
}

void AddLimit(CLI::App& command, DlqArguments& arguments) {
  command.add_option("--limit", arguments.request.limit, "at most so many")
      ->check(CLI::PositiveNumber);
}

void AddReplay(CLI::App& dlq, Run& run) {
  CLI::App* replay = dlq.add_subcommand(
      "replay", "send dead letters back to their topic; a dry run, unless --execute is given");
  replay->footer(
      "Publishes dead letters to the topic that they came from, with key, value, own headers and\n"
      "timestamp as they were, and their record id in the header fencepost-record-id.\n"
      "Refused: an id that has a ledger row (it took effect since); an\n"
      "id conflict; and where nothing would recognise a second replay: no record id, or\n"
      "record_id: position without kafka.accept_replay_ids. Exit code 1 if any was refused or\n"
      "failed.\n");
  const auto arguments = AddLetterOptions(*replay);
  AddLimit(*replay, *arguments);
  replay->add_flag("--execute", arguments->request.execute, "do it; without this, a dry run");
  replay->add_flag(
      "--as-new-id", arguments->request.as_new_id,
      "as a record of its own: without the old id, and with a new one (of the dead letter's "
      "position) where kafka.accept_replay_ids is true. Letters that were replayed before are "
      "replayed again: choose by the filters");
  replay->callback([&run, arguments] { run = [arguments] { return ReplayLetters(*arguments); }; });
}

void AddPurge(CLI::App& dlq, Run& run) {
  CLI::App* purge = dlq.add_subcommand(
      "purge",
      "delete dead letters that have taken effect since; a dry run, unless --execute is given");
  purge->footer(
      "Deletes dead letters whose id has a row in the ledger (list marks them). Kafka deletes "
      "only\n"
      "from the beginning of a partition, so in each all go that stand before the first record\n"
      "that has to stay: one that has not taken effect, of another pipeline, or that the filters\n"
      "leave out. Needs the right to delete records of the topic.\n");
  const auto arguments = AddLetterOptions(*purge);
  purge->add_flag("--execute", arguments->request.execute, "do it; without this, a dry run");
  purge->add_flag("--all", arguments->request.all,
                  "also those that have not taken effect: they are lost for good");
  purge->callback([&run, arguments] { run = [arguments] { return PurgeLetters(*arguments); }; });
}

}  // namespace

void AddDlq(CLI::App& app, Run& run) {
  CLI::App* dlq = app.add_subcommand("dlq", "the dead letters: list, show, replay, purge");
  dlq->require_subcommand(1);
  CLI::App* list = dlq->add_subcommand("list", "one line each, and a total");
  const auto of_list = AddLetterOptions(*list);
  AddLimit(*list, *of_list);
  list->add_flag("--json", of_list->json, "one JSON object a line");
  list->callback([&run, of_list] { run = [of_list] { return PrintLetters(*of_list, false); }; });
  CLI::App* show = dlq->add_subcommand("show", "everything of each: headers, key, value");
  const auto of_show = AddLetterOptions(*show);
  AddLimit(*show, *of_show);
  show->add_flag("--json", of_show->json, "one JSON object a line");
  show->callback([&run, of_show] { run = [of_show] { return PrintLetters(*of_show, true); }; });
  AddReplay(*dlq, run);
  AddPurge(*dlq, run);
}

}  // namespace fencepost::cli
