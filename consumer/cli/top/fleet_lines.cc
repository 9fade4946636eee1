#include "consumer/cli/top/fleet_lines.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/cli/shared/command.h"
#include "consumer/record/text.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

using consumer::Fleet;
using consumer::FleetRow;
using consumer::FleetState;
using consumer::OneLine;

constexpr std::array kHead{"WORKER",    "STATE",   "LAG",  "OLDEST", "REC/S",
                           "CONTENDED", "EXPIRED", "LOST", "DEAD",   "PARTITIONS"};
using Cells = std::array<std::string, kHead.size()>;

std::string Cut(std::string text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t end = width == 0 ? 0 : width - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + (width == 0 ? "" : "…");
}

std::string SecondsText(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  const std::chrono::duration<double> span(*seconds);
  if (*seconds < 1) return SpanText(std::chrono::round<std::chrono::milliseconds>(span));
  return SpanText(std::chrono::round<std::chrono::seconds>(span));
}

std::string_view StateText(FleetState state) {
  switch (state) {
    case FleetState::kSilent:
      return "?";
    case FleetState::kOther:
      return "-";
    case FleetState::kNotReady:
      return "NOT READY";
    case FleetState::kReady:
      break;
  }
  return "ready";
}

Cells CellsOf(const FleetRow& row, bool several) {
  Cells cells{OneLine(row.worker), std::string(StateText(row.state))};
  if (!row.answered()) return cells;
  const std::string partitions = consumer::PartitionsText(row.partitions, several);
  return {OneLine(row.worker),
          std::string(StateText(row.state)),
          fmt::to_string(row.lag),
          SecondsText(row.oldest),
          fmt::format("{:.0f}", row.rate),
          fmt::to_string(row.contended),
          fmt::to_string(row.expired),
          fmt::to_string(row.lost),
          fmt::to_string(row.letters),
          partitions.empty() ? "-" : partitions};
}

// The first and the last column are texts, the others numbers.
std::vector<std::string> Aligned(const std::vector<Cells>& table) {
  std::array<std::size_t, kHead.size()> widths{};
  for (const Cells& cells : table) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::vector<std::string> lines;
  for (const Cells& cells : table) {
    std::string line = fmt::format("{:<{}}  {:<{}}", cells[0], widths[0], cells[1], widths[1]);
    for (std::size_t i = 2; i + 1 < cells.size(); ++i) {
      line += fmt::format("  {:>{}}", cells[i], widths[i]);
    }
    line += "  " + cells.back();
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

// What the table does not show.
std::vector<std::string> Remarks(const Fleet& fleet) {
  std::vector<std::string> lines;
  if (fleet.problem) {
    lines.push_back("the other workers are not known: " + OneLine(fleet.problem->Line()));
  } else if (!fleet.topics) {
    lines.push_back("the partitions without a worker are not known: " +
                    OneLine(fleet.topics.error()));
  }
  if (const auto left = WithoutAWorker(fleet); !left.empty()) {
    lines.push_back("no worker that answered has " + consumer::PartitionsText(left, true));
  }
  for (const FleetRow& row : fleet.rows) {
    if (row.trouble.empty()) continue;
    lines.push_back(fmt::format("{}: {}", OneLine(row.worker), OneLine(row.trouble)));
  }
  return lines;
}

}  // namespace

std::vector<std::string> LinesOf(const Fleet& fleet, std::size_t width) {
  const FleetRow total = TotalOf(fleet);
  const bool several = total.partitions.size() > 1;
  std::set<std::string> versions;
  std::vector<Cells> table(1);
  std::ranges::copy(kHead, table.front().begin());
  for (const FleetRow& row : fleet.rows) {
    table.push_back(CellsOf(row, several));
    if (row.answered()) versions.insert(row.version);
  }
  table.push_back(CellsOf(total, several));
  table.back()[1] = "";
  std::vector<std::string> lines{fmt::format(
      "pipeline {}, group {}: {} worker{}{}", fleet.pipeline, OneLine(fleet.group),
      fleet.rows.size(), fleet.rows.size() == 1 ? "" : "s",
      versions.empty() ? "" : fmt::format(", version {}", fmt::join(versions, " and ")))};
  std::ranges::move(Aligned(table), std::back_inserter(lines));
  std::ranges::move(Remarks(fleet), std::back_inserter(lines));
  for (std::string& line : lines) line = Cut(std::move(line), width);
  return lines;
}

int ExitCodeOf(const Fleet& fleet) {
  const bool any = std::ranges::any_of(fleet.rows, &FleetRow::answered);
  const bool silent =
      std::ranges::find(fleet.rows, FleetState::kSilent, &FleetRow::state) != fleet.rows.end();
  return any && !silent && !fleet.problem ? kOk : kFailed;
}

}  // namespace fencepost::cli
