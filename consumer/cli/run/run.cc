// fencepost run FILE...: the workers of these pipelines, until SIGTERM or SIGINT. Its arguments.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/run/process.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/record/text.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;

struct RunArguments {
  PipelineFiles pipelines;
  std::string http;
  std::string worker;
};

constexpr std::size_t kMaxWorkerName = 255;

// The name goes into every ledger row, header and log line: one that a database refuses would make
// every record bad.
tl::expected<std::string, std::string> GoodName(const std::string& name) {
  const bool control =
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const char* const why = !consumer::IsUtf8(name)        ? "is not valid UTF-8"
                          : control                      ? "holds control characters"
                          : name.find('/') != name.npos  ? "holds a /"
                          : name.size() > kMaxWorkerName ? "is longer than 255 bytes"
                                                         : nullptr;
  if (why == nullptr) return name;
  return tl::unexpected(fmt::format(
      "the worker's name, given by --worker or FENCEPOST_WORKER, {}: give another", why));
}

// A host's name may be anything; what is no printable ASCII becomes '-'.
std::string OwnName() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  for (char& c : host) {
    if (c != '\0' && (c <= ' ' || c > '~')) c = '-';
  }
  return fmt::format("{:.200}-{}-{:08x}", host, getpid(), std::random_device{}());
}

// Static members are known by their names: the same ones after a restart, as Kafka allows them.
tl::expected<void, std::string> NameFitsStaticMembers(
    const RunArguments& arguments, const std::string& name,
    const std::vector<PipelineOptions>& pipelines) {
  if (std::ranges::none_of(pipelines, [](const PipelineOptions& pipeline) {
        return pipeline.kafka.static_members;
      })) {
    return {};
  }
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  constexpr std::size_t kMaxInstanceId = 249;
  if (arguments.worker.empty()) {
    return tl::unexpected(
        std::string("kafka.static_members needs a name that this worker has after a restart too: "
                    "give it with --worker or FENCEPOST_WORKER"));
  }
  if (name.size() <= kMaxInstanceId && name.find_first_not_of(kAllowed) == std::string::npos) {
    return {};
  }
  return tl::unexpected(fmt::format(
      "kafka.static_members: the worker's name '{}' may have letters, digits, '.', '_' and '-', "
      "and at most {} of them: give another",
      name, kMaxInstanceId));
}

// --http or FENCEPOST_HTTP, else the files' own; one server a process.
tl::expected<std::string, std::string> HttpAddress(const RunArguments& arguments,
                                                   const std::vector<PipelineOptions>& pipelines) {
  if (!arguments.http.empty()) return arguments.http;
  std::set<std::string> addresses;
  for (const PipelineOptions& pipeline : pipelines) {
    if (!pipeline.observe.http.empty()) addresses.insert(pipeline.observe.http);
  }
  if (addresses.size() > 1) {
    return tl::unexpected("the files name several observe.http addresses (" + *addresses.begin() +
                          ", " + *addresses.rbegin() + "); a process has one: give it with --http");
  }
  return addresses.empty() ? std::string() : *addresses.begin();
}

// Where one file says who may ask the port, and where it is reached, the others may say nothing:
// what one of them keeps shut is not opened by another. The first file then has it for all.
bool AgreeOnThePort(std::vector<PipelineOptions>& pipelines) {
  consumer::ObserveOptions& port = pipelines.front().observe;
  const auto agree = [](auto& one, const auto& other) {
    if (one == std::remove_reference_t<decltype(one)>{}) one = other;
    return one == other || other == std::remove_reference_t<decltype(one)>{};
  };
  const bool agreed = std::ranges::all_of(pipelines, [&](const PipelineOptions& other) {
    return agree(port.tls, other.observe.tls) && agree(port.auth, other.observe.auth) &&
           agree(port.advertise, other.observe.advertise);
  });
  for (PipelineOptions& each : pipelines) each.observe.advertise = port.advertise;
  return agreed;
}

// A process has one exporter of spans: files that say anything of traces say the same.
bool AgreeOnTraces(const std::vector<PipelineOptions>& pipelines) {
  const auto said = [](const PipelineOptions& pipeline) {
    const consumer::TraceOptions& traces = pipeline.observe.traces;
    return std::tie(traces.endpoint, traces.sample, traces.slow, traces.headers);
  };
  const PipelineOptions& first = FirstOfTraces(pipelines);
  return std::ranges::all_of(pipelines, [&](const PipelineOptions& other) {
    return !SaysTraces(other) || said(other) == said(first);
  });
}

// All handlers before the first worker starts: a file that is wrong stops nobody else's records.
bool HandlersAreGood(const std::vector<PipelineOptions>& pipelines) {
  bool good = true;
  for (const PipelineOptions& pipeline : pipelines) {
    const auto checked = consumer::CheckHandler(pipeline.handler);
    if (checked) continue;
    PrintError(fmt::format("{}: {}", pipeline.name, checked.error().Line()));
    good = false;
  }
  return good;
}

// What the log says first. A name that was given is one that the worker has after a restart too:
// then it may keep its partitions.
void TellAtStart(metrics::Log& log, const RunArguments& arguments,
                 const std::vector<PipelineOptions>& pipelines) {
  if (arguments.worker.empty()) return;
  for (const PipelineOptions& pipeline : pipelines) {
    if (pipeline.kafka.static_members) continue;
    log.Write(locking::Severity::kInfo, pipeline.name, "no_static_member",
              "a worker that is killed and comes back under its name stops the whole group until "
              "session.timeout.ms is over for the one that was killed; kafka.static_members: true "
              "gives it its partitions back, and stops nobody");
  }
}

int RunPipelines(const RunArguments& arguments) {
  const RunSignals signals;
  const auto name = GoodName(arguments.worker.empty() ? OwnName() : arguments.worker);
  if (!name) return ExitUsage(name.error());
  std::vector<std::string> warnings;
  auto pipelines = LoadPipelines(arguments.pipelines, &warnings);
  if (!pipelines || !HandlersAreGood(*pipelines)) return kUsage;
  if (!AgreeOnThePort(*pipelines)) {
    return ExitUsage(
        "the files differ in observe.tls, observe.auth or observe.advertise; a process has one "
        "port: "
        "give the same");
  }
  if (!AgreeOnTraces(*pipelines)) {
    return ExitUsage(
        "the files differ in observe.traces; a process sends its traces in one way: give the same, "
        "or give it in one file");
  }
  const auto fits = NameFitsStaticMembers(arguments, *name, *pipelines);
  if (!fits) return ExitUsage(fits.error());
  const auto address = HttpAddress(arguments, *pipelines);
  if (!address) return ExitUsage(address.error());
  Process process(*pipelines, arguments.pipelines, *name);
  LogWarnings(process.log(), warnings);
  TellAtStart(process.log(), arguments, *pipelines);
  if (!address->empty()) {
    if (const auto started = process.StartHttp(*address); !started) {
      const std::string& code = started.error().code;
      const bool wrong = code == "http_bad_address" || code == "http_certificate";
      return wrong ? ExitUsage(started.error()) : ExitFailed(started.error());
    }
  }
  return process.RunUntilStopped(signals);
}

}  // namespace

void AddRun(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "run pipelines until SIGTERM or SIGINT; SIGHUP reloads their files");
  AddPipelineFiles(*command, arguments->pipelines);
  command->add_option("--http", arguments->http, "HOST:PORT of /metrics, /live, /ready, /status")
      ->envname("FENCEPOST_HTTP");
  command->add_option("--worker", arguments->worker, "this worker's name")
      ->envname("FENCEPOST_WORKER");
  command->callback([&run, arguments] {
    TakeFromEnvironment(arguments->http, "FENCEPOST_HTTP");
    TakeFromEnvironment(arguments->worker, "FENCEPOST_WORKER");
    run = [arguments] { return EndWithKafka(RunPipelines(*arguments)); };
  });
}

}  // namespace fencepost::cli
