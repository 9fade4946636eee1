// fencepost top FILE: all workers of a pipeline's group, asked on their ports, as a table that is
// drawn again every two seconds; where the output is no terminal, once.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/top/fleet_lines.h"
#include "consumer/fleet/ask_port.h"
#include "consumer/fleet/fleet_look.h"

namespace fencepost::cli {
namespace {

using consumer::Fleet;
using consumer::FleetLook;

constexpr FleetLook::Limits kLimits{.kafka = consumer::Millis(3000),
                                    .workers = consumer::Millis(3000)};
constexpr std::chrono::seconds kBetween{2};

struct TopArguments {
  PipelineFiles pipeline;
  std::vector<std::string> workers;  // HOST:PORT; none: the group's members
  bool once = false;
};

std::size_t Width(bool drawn) {
  winsize size{};
  const bool known = drawn && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : std::size_t{1000};
}

int Draw(const TopArguments& arguments, FleetLook& look) {
  std::signal(SIGPIPE, SIG_IGN);  // of a worker that goes away
  const bool drawn = !arguments.once && isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const Fleet fleet =
        (arguments.workers.empty() ? look.Look() : look.Look(arguments.workers)).front();
    if (fleet.problem && !drawn) return ExitFailed(*fleet.problem);
    std::string text = drawn ? "\x1b[H\x1b[2J" : "";
    if (fleet.problem) {
      text += fleet.problem->Line() + "\n";
    } else {
      for (const std::string& line : LinesOf(fleet, Width(drawn))) text += line + "\n";
    }
    fmt::print("{}", text);
    if (std::fflush(stdout) != 0) return kFailed;
    if (!drawn) return ExitCodeOf(fleet);
    std::this_thread::sleep_for(kBetween);
  }
}

int RunTop(const TopArguments& arguments) {
  const auto pipelines = LoadPipelines(arguments.pipeline);
  if (!pipelines) return kUsage;
  const consumer::PipelineOptions& options = pipelines->front();
  const auto no_address = [](const std::string& text) {
    const std::string at = consumer::FromHere(text);
    const std::size_t colon = at.empty() ? 0 : at.rfind(':');
    return at.empty() || at.find_first_of("/@ ") != std::string::npos ||
           at.find_first_not_of("0123456789", colon + 1) != std::string::npos;
  };
  const auto wrong = std::ranges::find_if(arguments.workers, no_address);
  if (wrong != arguments.workers.end()) {
    return ExitUsage(fmt::format("top: --worker {}: it is not HOST:PORT", *wrong));
  }
  if (arguments.workers.empty() && options.observe.advertise.empty() &&
      no_address(options.observe.http)) {
    return ExitUsage(
        "top: observe.http has no port, where the workers would be asked: set it or "
        "observe.advertise, or name them with --worker HOST:PORT");
  }
  // A member's host is where it came from: whoever may join the group would be told them in clear.
  if (arguments.workers.empty() && HasCredentials(options.observe) &&
      options.observe.tls.certificate.empty()) {
    return ExitUsage(
        "top: observe.auth without observe.tls: any member of the group would be sent the "
        "credentials in clear; give the port TLS, or name the workers with --worker HOST:PORT");
  }
  FleetLook look(*pipelines, options.observe, kLimits);
  return Draw(arguments, look);
}

}  // namespace

void AddTop(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand("top", "all workers of a pipeline, as a table");
  command->footer(
      "Asks each member of the consumer group for its /status, at its observe.advertise, else at\n"
      "the host that the brokers see and the port of observe.http, with the file's TLS and\n"
      "credentials. In a terminal it goes on until Ctrl-C; else it prints once. Exit code 1 where\n"
      "a worker did not answer, or none has the pipeline.");
  AddPipelineFile(*command, arguments->pipeline);
  command
      ->add_option("--worker", arguments->workers,
                   "HOST:PORT of a worker, instead of the group's members; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--once", arguments->once, "print once in a terminal, too");
  command->callback([&run, arguments] { run = [arguments] { return RunTop(*arguments); }; });
}

}  // namespace fencepost::cli
