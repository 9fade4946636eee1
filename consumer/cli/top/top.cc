// fencepost top FILE: all workers of a pipeline's group, asked on their ports, as a table that is
// drawn again every two seconds; where the output is no terminal, once.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/http_get.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/top/fleet.h"
#include "consumer/kafka/client/admin.h"

namespace fencepost::cli {
namespace {

using consumer::KafkaAdmin;
using consumer::Millis;

constexpr Millis kLimit{3000};  // of each question
constexpr std::chrono::seconds kBetween{2};
constexpr std::size_t kAtOnce = 32;  // workers

struct TopArguments {
  PipelineFiles pipeline;
  std::vector<std::string> workers;  // HOST:PORT; none: the group's members
  bool once = false;
};

struct Asked {
  std::string address;
  std::string client;
};

class Top {
 public:
  Top(const TopArguments& arguments, const consumer::PipelineOptions& options)
      : arguments_(arguments), options_(options) {}

  int Run() {
    const bool drawn = !arguments_.once && isatty(STDOUT_FILENO) == 1;
    for (;;) {
      const auto workers = Workers();
      if (!workers && !drawn) return ExitFailed(workers.error());
      std::string text = drawn ? "\x1b[H\x1b[2J" : "";
      bool any = false;
      if (workers) {
        Fleet fleet = Ask(*workers);
        any = std::ranges::any_of(fleet.rows, &FleetRow::answered);
        for (const std::string& line : LinesOf(std::move(fleet), Width(drawn))) {
          text += line + "\n";
        }
      } else {
        text += workers.error().Line() + "\n";
      }
      fmt::print("{}", text);
      if (std::fflush(stdout) != 0) return kFailed;
      if (!drawn) return any ? kOk : kFailed;
      std::this_thread::sleep_for(kBetween);
    }
  }

 private:
  static std::size_t Width(bool drawn) {
    winsize size{};
    const bool known = drawn && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : std::size_t{1000};
  }

  // client.id is the worker's name behind this (consumer/worker/worker_impl.h).
  static std::string NameIn(const std::string& client) {
    constexpr std::string_view prefix = "fencepost-";
    return client.starts_with(prefix) ? client.substr(prefix.size()) : client;
  }

  // Each at the host that the group's coordinator sees, and the port of the file.
  tl::expected<std::vector<Asked>, Error> Workers() {
    std::vector<Asked> asked;
    for (const std::string& address : arguments_.workers) asked.push_back({ReachedAt(address), ""});
    if (!asked.empty()) return asked;
    if (admin_ == nullptr) {
      auto made = KafkaAdmin::Make(options_.kafka);
      if (!made) return tl::unexpected(made.error());
      admin_ = std::move(*made);
    }
    const auto members = admin_->Members(options_.kafka.group, kLimit);
    if (!members) return tl::unexpected(members.error());
    if (members->empty()) {
      return tl::unexpected(Error{"no_worker",
                                  fmt::format("no worker is in group '{}'", options_.kafka.group),
                                  "", "start one, or name workers with --worker HOST:PORT"});
    }
    const std::string& port = options_.observe.http;
    for (const auto& member : *members) {
      const bool ipv6 = member.host.find(':') != std::string::npos;
      asked.push_back({fmt::format("{}{}", ipv6 ? "[" + member.host + "]" : member.host,
                                   port.substr(std::min(port.rfind(':'), port.size()))),
                       NameIn(member.client)});
    }
    return asked;
  }

  [[nodiscard]] FleetAnswer AskOne(const Asked& asked) const {
    FleetAnswer answer{.address = asked.address, .client = asked.client, .status = ""};
    const auto reply =
        AskPort(options_.observe, PortUrl(options_.observe, asked.address, "/status"), kLimit);
    if (!reply) {
      answer.status = tl::unexpected("no answer: " + reply.error());
    } else if (reply->status != 200) {
      answer.status = tl::unexpected(fmt::format("HTTP {}", reply->status));
    } else {
      answer.status = reply->body;
    }
    return answer;
  }

  Fleet Ask(const std::vector<Asked>& workers) {
    Fleet fleet{.pipeline = options_.name, .group = options_.kafka.group, .rows = {}, .topics = {}};
    for (std::size_t begin = 0; begin < workers.size(); begin += kAtOnce) {
      std::vector<std::future<FleetAnswer>> answers;
      for (std::size_t i = begin; i < std::min(workers.size(), begin + kAtOnce); ++i) {
        answers.push_back(std::async(std::launch::async, [&, i] { return AskOne(workers[i]); }));
      }
      for (auto& answer : answers) fleet.rows.push_back(RowOf(answer.get(), options_.name));
    }
    if (admin_ == nullptr) return fleet;
    if (const auto topics = admin_->Topics(options_.kafka.topics, kLimit)) {
      fleet.topics.emplace();
      for (const auto& topic : *topics) (*fleet.topics)[topic.name] = topic.partitions;
    }
    return fleet;
  }

  const TopArguments& arguments_;
  const consumer::PipelineOptions& options_;
  std::unique_ptr<KafkaAdmin> admin_;
};

int RunTop(const TopArguments& arguments) {
  const auto pipelines = LoadPipelines(arguments.pipeline);
  if (!pipelines) return kUsage;
  const consumer::PipelineOptions& options = pipelines->front();
  const auto no_address = [](const std::string& text) {
    const std::string at = ReachedAt(text);
    const std::size_t colon = at.empty() ? 0 : at.rfind(':');
    return at.empty() || at.find_first_of("/@ ") != std::string::npos ||
           at.find_first_not_of("0123456789", colon + 1) != std::string::npos;
  };
  const auto wrong = std::ranges::find_if(arguments.workers, no_address);
  if (wrong != arguments.workers.end()) {
    return ExitUsage(fmt::format("top: --worker {}: it is not HOST:PORT", *wrong));
  }
  if (arguments.workers.empty() && no_address(options.observe.http)) {
    return ExitUsage(
        "top: observe.http has no port, where the workers would be asked: set it, or name them "
        "with --worker HOST:PORT");
  }
  // A member's host is where it came from: whoever may join the group would be told them in clear.
  const auto& auth = options.observe.auth;
  const bool credentials = !auth.bearer.empty() || !auth.username.empty();
  if (arguments.workers.empty() && credentials && options.observe.tls.certificate.empty()) {
    return ExitUsage(
        "top: observe.auth without observe.tls: any member of the group would be sent the "
        "credentials in clear; give the port TLS, or name the workers with --worker HOST:PORT");
  }
  return Top(arguments, options).Run();
}

}  // namespace

void AddTop(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand("top", "all workers of a pipeline, as a table");
  command->footer(
      "Asks each member of the consumer group for its /status, at the host that the brokers see\n"
      "and the port of observe.http, with the file's TLS and credentials. In a terminal it goes "
      "on\n"
      "until Ctrl-C; else it prints once. Exit code 1 where no worker answered.");
  AddPipelineFile(*command, arguments->pipeline);
  command
      ->add_option("--worker", arguments->workers,
                   "HOST:PORT of a worker, instead of the group's members; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--once", arguments->once, "print once in a terminal, too");
  command->callback([&run, arguments] { run = [arguments] { return RunTop(*arguments); }; });
}

}  // namespace fencepost::cli
