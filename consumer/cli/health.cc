// fencepost health: asks the worker on this machine for /live or /ready. What a container's health
// check and a script call, so that neither needs another HTTP client.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/fleet/ask_port.h"

namespace fencepost::cli {
namespace {

struct HealthArguments {
  PipelineFiles pipelines;  // none: the port has neither TLS nor credentials
  std::string http;
  bool ready = false;
  long timeout_s = 3;
};

int Health(const HealthArguments& arguments) {
  consumer::ObserveOptions port;
  if (!arguments.pipelines.files.empty()) {
    const auto pipelines = LoadPipelines(arguments.pipelines);
    if (!pipelines) return kUsage;
    port = pipelines->front().observe;
  }
  const std::string& address = arguments.http.empty() ? port.http : arguments.http;
  const std::string at = consumer::FromHere(address);
  if (at.empty()) {
    return ExitUsage(
        fmt::format("'{}' is not HOST:PORT: give the worker's address with --http, "
                    "FENCEPOST_HTTP or its file",
                    address));
  }
  const std::string url = PortUrl(port, at, arguments.ready ? "/ready" : "/live");
  auto reply = AskPort(port, url, std::chrono::seconds(arguments.timeout_s));
  if (!reply) {
    return ExitFailed(fmt::format("{}: no answer: {}", url, reply.error()));
  }
  std::string& text = reply->body;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (reply->status != 200) {
    return ExitFailed(fmt::format("{}: {} {}", url, reply->status, text));
  }
  std::printf("%s\n", text.c_str());
  return kOk;
}

}  // namespace

void AddHealth(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("health", "ask the worker on this machine whether it is live or ready");
  const auto arguments = std::make_shared<HealthArguments>();
  AddPipelineFile(*command, arguments->pipelines,
                  "the worker's file, where observe has tls or auth")
      ->required(false);
  command->add_option("--http", arguments->http, "HOST:PORT of the worker")
      ->envname("FENCEPOST_HTTP");
  command->add_flag("--ready", arguments->ready, "ask for /ready instead of /live");
  command->add_option("--timeout", arguments->timeout_s, "seconds to wait for the answer")
      ->check(CLI::Range(1, 600));
  command->callback([&run, arguments] {
    TakeFromEnvironment(arguments->http, "FENCEPOST_HTTP");
    run = [arguments] { return Health(*arguments); };
  });
}

}  // namespace fencepost::cli
