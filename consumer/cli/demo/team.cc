#include "consumer/cli/demo/team.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "consumer/fleet/ask_port.h"

namespace fencepost::cli {
namespace {

struct Series {
  std::string_view prefix;  // name, and the labels that pick it, as a part of the line
  std::string_view label;
  std::int64_t Totals::*field;
};

constexpr Series kSeries[] = {
    {"fencepost_records_processed_total", "result=\"done\"", &Totals::processed},
    {"fencepost_records_processed_total", "result=\"skipped\"", &Totals::skipped},
    {"fencepost_locks_held", "", &Totals::held},
    {"fencepost_consumer_lag_records", "", &Totals::lag},
    {"fencepost_commit_gap_records", "", &Totals::commit_gap},
    {"fencepost_partitions_assigned", "", &Totals::partitions},
    {"fencepost_lock_acquisitions_total", "result=\"contended\"", &Totals::contended},
    {"fencepost_lock_expirations_total", "", &Totals::expired},
    {"fencepost_fencing_rejections_total", "", &Totals::fenced},
    {"fencepost_fencing_rejections_total", "side=\"output\"", &Totals::late_writes},
    {"fencepost_lock_takeovers_total", "", &Totals::takeovers},
    {"fencepost_invariant_violations_total", "", &Totals::violations},
};

void AddLine(const std::string& line, Totals& totals) {
  for (const Series& series : kSeries) {
    const std::size_t end = series.prefix.size();
    const bool named = line.compare(0, end, series.prefix) == 0 && line.size() > end &&
                       (line[end] == '{' || line[end] == ' ');
    if (!named || line.find(series.label) == std::string::npos) continue;
    totals.*series.field += std::llround(std::strtod(line.c_str() + line.rfind(' '), nullptr));
  }
}

void Add(const Totals& more, Totals& sum) {
  for (const Series& series : kSeries) sum.*series.field += more.*series.field;
}

// Nothing when the worker does not answer within 300 ms.
std::optional<Totals> Scrape(const std::string& url) {
  const auto reply = consumer::AskPort({}, url + "/metrics", std::chrono::milliseconds(300));
  if (!reply) return std::nullopt;
  Totals totals;
  std::istringstream lines(reply->body);
  for (std::string line; std::getline(lines, line);) AddLine(line, totals);
  return totals;
}

}  // namespace

Team::Team(const std::filesystem::path& folder, const std::string& pipeline_file, int workers) {
  for (int i = 1; i <= workers; ++i) {
    Member& member = members_.emplace_back();
    member.view.name = fmt::format("worker-{}", i);
    member.child = std::make_unique<Child>(
        std::vector<std::string>{"/proc/self/exe", "run", pipeline_file, "--http", "127.0.0.1:0",
                                 "--worker", member.view.name},
        folder / member.view.name);
  }
}

void Team::Look() {
  for (Member& member : members_) {
    if (member.view.state == WorkerState::kStopping && !member.child->Running()) {
      member.view.state = WorkerState::kEnded;
    }
    if (member.view.state != WorkerState::kRunning) continue;
    if (member.url.empty()) {
      const std::string said = member.child->Errors();
      constexpr std::string_view kSaid = "listening on ";  // in its log, as JSON
      const std::size_t at = said.find(kSaid);
      const std::size_t end = said.find('"', at);
      if (at == std::string::npos || end == std::string::npos) continue;
      member.url = said.substr(at + kSaid.size(), end - at - kSaid.size());
    }
    if (const auto totals = Scrape(member.url)) member.view.last = *totals;
  }
}

std::vector<WorkerView> Team::View() const {
  std::vector<WorkerView> views;
  for (const Member& member : members_) views.push_back(member.view);
  return views;
}

Totals Team::Sum() const {
  Totals sum;
  for (const Member& member : members_) Add(member.view.last, sum);
  return sum;
}

Totals Team::SumRunning() const {
  Totals sum;
  for (const Member& member : members_) {
    if (member.view.state == WorkerState::kRunning) Add(member.view.last, sum);
  }
  return sum;
}

int Team::BusiestHolder() const {
  int busiest = -1;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const WorkerView& view = members_[i].view;
    if (view.state != WorkerState::kRunning || view.last.held <= most) continue;
    most = view.last.held;
    busiest = static_cast<int>(i);
  }
  return busiest;
}

void Team::Kill(int worker) {
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.child->Signal(SIGKILL);
  member.view.state = WorkerState::kKilled;
}

void Team::Freeze(int worker) {
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.child->Freeze();
  member.view.state = WorkerState::kFrozen;
}

void Team::Thaw(int worker) {
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.child->Signal(SIGCONT);
  member.view.state = WorkerState::kRunning;
}

void Team::Stop() {
  for (Member& member : members_) {
    if (member.view.state == WorkerState::kKilled) continue;
    member.child->Signal(SIGTERM);
    member.view.state = WorkerState::kStopping;
  }
}

bool Team::Ended() {
  return std::ranges::none_of(members_, [](const Member& one) { return one.child->Running(); });
}

std::string Team::UnexpectedEnd() {
  for (Member& member : members_) {
    const WorkerState state = member.view.state;
    const auto status = member.child->Wait(std::chrono::milliseconds(0));
    const bool told = state == WorkerState::kStopping || state == WorkerState::kEnded;
    if (!status || state == WorkerState::kKilled || (told && *status == 0)) continue;
    return fmt::format("{} ended with {}: {}", member.view.name, *status,
                       member.child->LastWords());
  }
  return "";
}

}  // namespace fencepost::cli
