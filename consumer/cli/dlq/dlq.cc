// fencepost dlq list|show|replay FILE: the dead letter topic, looked at and sent back.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/dlq/content_difference.h"
#include "consumer/cli/dlq/dlq_letter.h"
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
  std::string error_class;
  std::string id;
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<consumer::Offset> offset;
  std::string since;
  std::string until;
  std::size_t limit = 0;
  bool json = false;
  bool as_new_id = false;
  bool execute = false;
};

// What every one of the three needs first. Nothing: it was said why (exit 2).
struct Asked {
  PipelineOptions options;
  LetterFilter filter;
};
std::optional<Asked> Understand(const DlqArguments& arguments) {
  auto pipelines = LoadPipelines({arguments.file});
  if (!pipelines) return std::nullopt;
  Asked asked{std::move(pipelines->front()), {}};
  if (!asked.options.dead_letter) {
    PrintError(arguments.file +
               ": there is no dead_letter section, so there are no dead letters; add "
               "dead_letter: {topic: …}");
    return std::nullopt;
  }
  asked.filter = {.pipeline = asked.options.name,
                  .error_class = arguments.error_class,
                  .id = arguments.id.empty() ? "" : consumer::StoredId(arguments.id),
                  .topic = arguments.topic,
                  .partition = arguments.partition,
                  .offset = arguments.offset};
  const auto now = locking::ReadClocks().wall;
  const auto read = [&](const char* option, const std::string& text,
                        std::optional<WallTime>& moment) {
    if (text.empty()) return true;
    const auto parsed = ParseMoment(text, now);
    if (parsed) {
      moment = *parsed;
    } else {
      PrintError(fmt::format("{}: {}", option, parsed.error()));
    }
    return parsed.has_value();
  };
  if (!read("--since", arguments.since, asked.filter.since)) return std::nullopt;
  if (!read("--until", arguments.until, asked.filter.until)) return std::nullopt;
  return asked;
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

int PrintLetters(const DlqArguments& arguments, bool all) {
  const auto asked = Understand(arguments);
  if (!asked) return kUsage;
  auto topic = LetterTopic::Open(asked->options, kConnectLimit);
  if (!topic) return ExitFailed(topic.error());
  std::size_t printed = 0;
  const auto seen = topic->Visit(
      asked->filter,
      [&](const StoredLetter& letter) {
        if (arguments.json) {
          fmt::print("{}\n", LetterJson(letter, all).dump());
        } else if (all) {
          fmt::print("{}{}{}", printed == 0 ? "" : "\n", LetterText(letter),
                     DifferenceText(asked->options, letter));
        } else {
          fmt::print("{}\n", LetterLine(letter));
        }
        return ++printed != arguments.limit;
      },
      kReadLimit);
  if (!seen) return ExitFailed(seen.error());
  if (arguments.json) return kOk;
  const bool cut = arguments.limit > 0 && printed == arguments.limit;
  fmt::print("{}{} dead letter{} in {}{}{}\n", all && printed > 0 ? "\n" : "", printed,
             printed == 1 ? "" : "s", asked->options.dead_letter->topic,
             cut ? " (there may be more: --limit)" : "", LeftOut(*seen));
  return kOk;
}

void PrintReplayed(const PipelineOptions& options, const ReplayRequest& request,
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

int ReplayLetters(const DlqArguments& arguments) {
  const auto asked = Understand(arguments);
  if (!asked) return kUsage;
  auto topic = LetterTopic::Open(asked->options, kConnectLimit);
  if (!topic) return ExitFailed(topic.error());
  const ReplayRequest request{.filter = asked->filter,
                              .limit = arguments.limit,
                              .as_new_id = arguments.as_new_id,
                              .execute = arguments.execute};
  const auto counts = Replay(asked->options, *topic, request);
  if (!counts) {
    std::fflush(stdout);
    return ExitFailed(counts.error());
  }
  PrintReplayed(asked->options, request, *counts);
  return counts->refused + counts->failed == counts->done ? kOk : kFailed;
}

std::shared_ptr<DlqArguments> AddLetterOptions(CLI::App& command) {
  auto arguments = std::make_shared<DlqArguments>();
  command.add_option("FILE", arguments->file, "the pipeline file")->required();
  command.add_option("--class", arguments->error_class,
                     "only of this error class: bad_record, id_conflict, timeout, 404, …");
  command.add_option("--id", arguments->id, "only of this record id");
  command.add_option("--topic", arguments->topic, "only records that came from this topic");
  command.add_option("--partition", arguments->partition, "only from this partition of it")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--offset", arguments->offset, "only from this offset of it")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--since", arguments->since,
                     "only those that failed at this time or later: RFC 3339, or an age like 2h");
  command.add_option("--until", arguments->until, "only those that failed before this time");
  command.add_option("--limit", arguments->limit, "at most so many")->check(CLI::PositiveNumber);
  return arguments;
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
  replay->add_flag("--execute", arguments->execute, "do it; without this it is only told");
  replay->add_flag(
      "--as-new-id", arguments->as_new_id,
      "as a record of its own: without the old id, and with a new one (of the dead letter's "
      "position) where kafka.accept_replay_ids is true. Letters that were replayed before are "
      "replayed again: choose by the filters");
  replay->callback([&run, arguments] { run = [arguments] { return ReplayLetters(*arguments); }; });
}

}  // namespace

void AddDlq(CLI::App& app, Run& run) {
  CLI::App* dlq = app.add_subcommand("dlq", "the dead letters: list, show, replay");
  dlq->require_subcommand(1);
  CLI::App* list = dlq->add_subcommand("list", "one line each, and a total");
  const auto of_list = AddLetterOptions(*list);
  list->add_flag("--json", of_list->json, "one JSON object a line");
  list->callback([&run, of_list] { run = [of_list] { return PrintLetters(*of_list, false); }; });
  CLI::App* show = dlq->add_subcommand("show", "everything of each: headers, key, value");
  const auto of_show = AddLetterOptions(*show);
  show->add_flag("--json", of_show->json, "one JSON object a line");
  show->callback([&run, of_show] { run = [of_show] { return PrintLetters(*of_show, true); }; });
  AddReplay(*dlq, run);
}

}  // namespace fencepost::cli
