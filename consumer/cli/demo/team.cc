#include "consumer/cli/demo/team.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "consumer/cli/shared/http_get.h"

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
    {"fencepost_records_in_flight", "", &Totals::in_flight},
    {"fencepost_locks_held", "", &Totals::held},
    {"fencepost_consumer_lag_records", "", &Totals::lag},
    {"fencepost_commit_gap_records", "", &Totals::commit_gap},
    {"fencepost_partitions_assigned", "", &Totals::partitions},
    {"fencepost_lock_acquisitions_total", "result=\"contended\"", &Totals::contended},
    {"fencepost_lock_expirations_total", "", &Totals::expired},
    {"fencepost_fencing_rejections_total", "", &Totals::fenced},
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

// Nothing when the worker does not answer within 300 ms.
std::optional<Totals> Scrape(const std::string& url) {
  const auto reply = HttpGet(url + "/metrics", std::chrono::milliseconds(300));
  if (!reply) return std::nullopt;
  Totals totals;
  std::istringstream lines(reply->body);
  for (std::string line; std::getline(lines, line);) AddLine(line, totals);
  return totals;
}

std::string LastLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - start);
}

}  // namespace

Totals& Totals::operator+=(const Totals& other) {
  for (const Series& series : kSeries) this->*series.field += other.*series.field;
  return *this;
}

Team::Team(const std::filesystem::path& folder, const std::string& pipeline_file, int workers) {
  for (int i = 1; i <= workers; ++i) {
    Member& member = members_.emplace_back();
    member.name = fmt::format("worker-{}", i);
    member.child = std::make_unique<Child>(
        std::vector<std::string>{"/proc/self/exe", "run", pipeline_file, "--http", "127.0.0.1:0",
                                 "--worker", member.name},
        folder / member.name);
  }
}

void Team::Look() {
  for (Member& member : members_) {
    if (member.state != WorkerState::kRunning) continue;
    if (member.url.empty()) {
      const std::string said = member.child->Errors();
      constexpr std::string_view kSaid = "listening on ";  // in its log, as JSON
      const std::size_t at = said.find(kSaid);
      const std::size_t end = said.find('"', at);
      if (at == std::string::npos || end == std::string::npos) continue;
      member.url = said.substr(at + kSaid.size(), end - at - kSaid.size());
    }
    if (const auto totals = Scrape(member.url)) member.last = *totals;
  }
}

Totals Team::Sum() const {
  Totals sum;
  for (const Member& member : members_) sum += member.last;
  return sum;
}

Totals Team::SumRunning() const {
  Totals sum;
  for (const Member& member : members_) {
    if (member.state == WorkerState::kRunning) sum += member.last;
  }
  return sum;
}

int Team::BusiestHolder() const {
  int busiest = -1;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].state != WorkerState::kRunning || members_[i].last.held <= most) continue;
    most = members_[i].last.held;
    busiest = static_cast<int>(i);
  }
  return busiest;
}

void Team::Kill(int worker) {
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.child->Signal(SIGKILL);
  member.state = WorkerState::kKilled;
}

void Team::Freeze(int worker) {
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.child->Freeze();
  member.state = WorkerState::kFrozen;
}

void Team::Thaw(int worker) {
  Member& member = members_[static_cast<std::size_t>(worker)];
  member.child->Signal(SIGCONT);
  member.state = WorkerState::kRunning;
}

std::string Team::UnexpectedEnd() {
  for (Member& member : members_) {
    if (member.state == WorkerState::kKilled || member.child->Running()) continue;
    return fmt::format("{} ended unexpectedly: {}", member.name, LastLine(member.child->Errors()));
  }
  return "";
}

std::string Team::StopAll(std::chrono::milliseconds limit) {
  for (const Member& member : members_) {
    if (member.state != WorkerState::kKilled) member.child->Signal(SIGTERM);
  }
  for (Member& member : members_) {
    if (member.state == WorkerState::kKilled) continue;
    const auto status = member.child->Wait(limit);
    if (!status) return member.name + " did not end on SIGTERM in time";
    if (*status != 0) {
      return fmt::format("{} ended with {}: {}", member.name, *status,
                         LastLine(member.child->Errors()));
    }
  }
  return "";
}

}  // namespace fencepost::cli
