#include "consumer/cli/run/own_command.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "consumer/cli/shared/position.h"
#include "consumer/handlers/exec/exec_process.h"

namespace fencepost::cli {
namespace {

using consumer::ExecProcess;
using consumer::PipeLines;
using std::chrono::steady_clock;

constexpr std::size_t kMostOutput = std::size_t{64} << 10;  // bytes
constexpr int kTurnMs = 100;

void TakeLines(PipeLines& pipe, std::string& text) {
  const auto add = [&](const std::string& line) {
    if (text.size() + line.size() < kMostOutput) text += line + "\n";
  };
  for (bool more = true; more;) {
    more = pipe.Read();
    while (const auto line = pipe.Next()) add(*line);
    if (pipe.too_long()) (void)pipe.TakePart();
  }
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  return variables;
}

}  // namespace

CommandEnd RunOwnCommand(std::vector<std::string> words, consumer::Millis limit,
                         const std::atomic<bool>& stop) {
  words.insert(words.begin(), "/proc/self/exe");
  const auto process = ExecProcess::Start({std::move(words), OwnEnvironment()});
  if (!process) return {.how = "before it began", .text = process.error().Line()};
  ExecProcess& running = **process;
  running.CloseInput();
  CommandEnd end;
  const auto until = steady_clock::now() + limit;
  for (;;) {
    const auto ended = running.Ended();
    TakeLines(running.out(), end.text);
    TakeLines(running.err(), end.text);
    if (ended) {
      end.how = *ended;
      if (end.how != kWell) end.text += fmt::format("it ended {}\n", end.how);
      return end;
    }
    if (stop || steady_clock::now() > until) {
      running.Kill();
      end.text += "it was stopped, as it took too long or the worker ends: see what it has done\n";
      return end;
    }
    pollfd wanted[] = {{running.out().fd(), POLLIN, 0},
                       {running.err().fd(), POLLIN, 0},
                       {running.end_fd(), POLLIN, 0}};
    poll(wanted, std::size(wanted), kTurnMs);
  }
}

std::vector<std::string> WordsAbout(std::string_view record, std::string_view what,
                                    const PipelineFiles& pipeline) {
  const bool explain = what == "explain";
  std::vector<std::string> words{"explain"};
  if (!explain) words = {"dlq", "replay"};
  words.push_back(pipeline.files.front());
  for (const std::string& file : pipeline.beside.with) words.push_back("--with=" + file);
  for (const std::string& setting : pipeline.beside.set) words.push_back("--set=" + setting);
  if (what == "replay") words.emplace_back("--execute");
  constexpr std::string_view kId = "id=";
  const auto position = ParsePosition(record);
  if (record.starts_with(kId) && record.size() > kId.size()) {
    words.push_back(fmt::format("--{}", record));
  } else if (!position) {
    return {};
  } else {
    if (explain) words.emplace_back("--");
    for (const auto& [option, value] :
         {std::pair("--topic=", position->where.topic),
          std::pair("--partition=", std::to_string(position->where.partition)),
          std::pair("--offset=", std::to_string(position->offset))}) {
      words.push_back((explain ? "" : option) + value);
    }
  }
  return words;
}

}  // namespace fencepost::cli
