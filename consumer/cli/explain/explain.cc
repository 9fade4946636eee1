// fencepost explain FILE TOPIC PARTITION OFFSET | --id ID: where one record is, and why.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/explain/explain_facts.h"
#include "consumer/cli/explain/explain_words.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/record/identity.h"

namespace fencepost::cli {
namespace {

struct ExplainArguments {
  PipelineFiles pipeline;
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<consumer::Offset> offset;
  std::string id;
  bool json = false;
};

void Print(const Facts& facts, const Verdict& verdict, bool as_json) {
  if (as_json) {
    nlohmann::json json = FactsJson(facts);
    json["verdict"] = verdict.code;
    json["what_happened"] = verdict.happened;
    json["what_next"] = verdict.next;
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("pipeline {}\n", facts.options.name);
  for (const std::string& line : FactLines(facts)) fmt::print("{}\n", line);
  fmt::print("what happened: {}\nwhat will happen next: {}\n", verdict.happened, verdict.next);
}

int Explain(const ExplainArguments& arguments) {
  const bool by_position = !arguments.topic.empty();
  if (by_position == !arguments.id.empty() || (by_position && !arguments.offset)) {
    return ExitUsage(
        "explain: name the record, either as TOPIC PARTITION OFFSET or by --id RECORD_ID");
  }
  const auto pipelines = LoadPipelines(arguments.pipeline);
  if (!pipelines) return kUsage;
  Question question;
  if (by_position) {
    question.position = Position{{arguments.topic, *arguments.partition}, *arguments.offset};
  } else if (const auto wrong =
                 WhyNoPosition(pipelines->front(), arguments.id, "TOPIC PARTITION OFFSET")) {
    return ExitUsage("explain: " + *wrong);
  } else {
    question.id = consumer::StoredId(arguments.id);
  }
  question.file = InWords(arguments.pipeline);
  const auto facts = Gather(pipelines->front(), question);
  if (!facts) return ExitUsage(facts.error());
  Print(*facts, Judge(*facts), arguments.json);
  if (!facts->NothingReached()) return kOk;
  return ExitFailed(
      facts->id.empty()
          ? "Kafka could not be reached, and without the record its id is not known, which "
            "the other parts are asked for; --id RECORD_ID asks them"
          : "nothing could be reached: neither Kafka, nor a lock node, nor a ledger");
}

}  // namespace

void AddExplain(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand("explain", "where one record is, and why");
  command->footer(
      "Asks Kafka, the lock nodes, the ledger and the dead letters. A part that cannot be reached "
      "is\n"
      "named, the others are shown. Exit code 1 where nothing could be reached.");
  AddPipelineFile(*command, arguments->pipeline);
  command->add_option("TOPIC", arguments->topic, "a topic that the pipeline reads");
  command->add_option("PARTITION", arguments->partition, "its partition, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("OFFSET", arguments->offset, "the record's offset")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--id", arguments->id, "the record's id, instead of its position");
  command->add_flag("--json", arguments->json, "one JSON object");
  command->callback([&run, arguments] { run = [arguments] { return Explain(*arguments); }; });
}

}  // namespace fencepost::cli
