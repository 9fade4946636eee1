#include "consumer/cli/top/fleet.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "consumer/record/text.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

using consumer::OneLine;
using nlohmann::json;

constexpr std::size_t kColumns = 9;
using Cells = std::array<std::string, kColumns>;

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

// Whoever answers may say anything: sums of these are numbers yet.
double Within(double number, double most) { return number > 0 ? std::min(number, most) : 0; }
std::int64_t Count(const json& number) {
  return static_cast<std::int64_t>(Within(number.get<double>(), 1e15));
}

void Take(const json& pipeline, FleetRow& row) {
  row.lag = Count(pipeline.at("lag"));
  row.rate = pipeline.at("records_per_second").get<double>();
  const json& counts = pipeline.at("counts");
  row.contended = Count(counts.at("lock_contended"));
  row.lost = Count(counts.at("lock_losses"));
  row.letters = Count(counts.at("dead_lettered"));
  for (const json& part : pipeline.at("partitions")) {
    row.partitions[part.at("topic").get<std::string>()].insert(
        static_cast<std::int32_t>(Count(part.at("partition"))));
    if (const auto age = part.find("oldest_age_seconds"); age != part.end()) {
      row.oldest = std::max(row.oldest.value_or(0), Within(age->get<double>(), 1e10));
    }
  }
  if (!pipeline.at("ready").get<bool>()) row.trouble = pipeline.at("reason").get<std::string>();
}

std::string PartitionsText(const FleetRow& row, bool several) {
  std::vector<std::string> texts;
  for (const auto& [topic, partitions] : row.partitions) {
    texts.push_back(several ? fmt::format("{} {}", OneLine(topic), RangesOf(partitions))
                            : RangesOf(partitions));
  }
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, "; "));
}

Cells CellsOf(const FleetRow& row, bool several) {
  if (!row.answered) return {OneLine(row.worker), "?", "", "", "", "", "", "", ""};
  return {OneLine(row.worker),
          row.trouble.empty() ? "ready" : "NOT READY",
          fmt::to_string(row.lag),
          SecondsText(row.oldest),
          fmt::format("{:.0f}", row.rate),
          fmt::to_string(row.contended),
          fmt::to_string(row.lost),
          fmt::to_string(row.letters),
          PartitionsText(row, several)};
}

FleetRow TotalOf(const std::vector<FleetRow>& rows) {
  FleetRow total{.worker = "all", .answered = true};
  for (const FleetRow& row : rows) {
    total.lag += row.lag;
    total.rate += row.rate;
    total.contended += row.contended;
    total.lost += row.lost;
    total.letters += row.letters;
    if (row.oldest) total.oldest = std::max(total.oldest.value_or(0), *row.oldest);
    for (const auto& [topic, partitions] : row.partitions) {
      total.partitions[topic].insert(partitions.begin(), partitions.end());
    }
  }
  return total;
}

// The partitions of the topics that are in none of the rows.
FleetRow WithoutAWorker(const std::map<std::string, int>& topics, const FleetRow& total) {
  FleetRow left;
  for (const auto& [topic, count] : topics) {
    const auto had = total.partitions.find(topic);
    for (std::int32_t partition = 0; partition < count; ++partition) {
      if (had != total.partitions.end() && had->second.contains(partition)) continue;
      left.partitions[topic].insert(partition);
    }
  }
  return left;
}

// The first and the last column are texts, the others numbers.
std::vector<std::string> Aligned(const std::vector<Cells>& table) {
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& cells : table) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::vector<std::string> lines;
  for (const Cells& cells : table) {
    std::string line = fmt::format("{:<{}}  {:<{}}", cells[0], widths[0], cells[1], widths[1]);
    for (std::size_t i = 2; i + 1 < kColumns; ++i) {
      line += fmt::format("  {:>{}}", cells[i], widths[i]);
    }
    line += "  " + cells.back();
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string RangesOf(const std::set<std::int32_t>& partitions) {
  std::string text;
  for (auto first = partitions.begin(); first != partitions.end();) {
    auto last = first;
    while (std::next(last) != partitions.end() && *std::next(last) == *last + 1) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::to_string(*first) : fmt::format("{}-{}", *first, *last);
    first = std::next(last);
  }
  return text;
}

FleetRow RowOf(const FleetAnswer& answer, const std::string& pipeline) {
  FleetRow row{.worker = answer.client.empty() ? answer.address : answer.client};
  const auto without = [&](const std::string& why) {
    FleetRow none{.worker = row.worker};
    none.trouble = fmt::format("{}: {}", answer.address, why);
    return none;
  };
  if (!answer.status) return without(answer.status.error());
  try {
    const json status = json::parse(*answer.status);
    row.worker = status.at("worker").get<std::string>();
    row.version = OneLine(status.at("version").get<std::string>(), 40);
    if (!answer.client.empty() && answer.client != row.worker) {
      return without(row.worker + " answers there, not " + answer.client +
                     "; name the workers with --worker");
    }
    for (const json& one : status.at("pipelines")) {
      if (one.at("pipeline") != pipeline) continue;
      Take(one, row);
      row.answered = true;
    }
  } catch (const json::exception&) {
    return without("its /status is none of a worker of this version");
  }
  return row.answered ? row : without("it has no pipeline " + pipeline);
}

std::vector<std::string> LinesOf(Fleet fleet, std::size_t width) {
  std::ranges::sort(fleet.rows, {}, &FleetRow::worker);
  const FleetRow total = TotalOf(fleet.rows);
  const bool several = total.partitions.size() > 1;
  std::set<std::string> versions;
  std::vector<Cells> table{
      {"WORKER", "STATE", "LAG", "OLDEST", "REC/S", "CONTENDED", "LOST", "DEAD", "PARTITIONS"}};
  for (const FleetRow& row : fleet.rows) {
    table.push_back(CellsOf(row, several));
    if (row.answered) versions.insert(row.version);
  }
  table.push_back(CellsOf(total, several));
  table.back()[1] = "";
  std::vector<std::string> lines{fmt::format(
      "pipeline {}, group {}: {} worker{}{}", fleet.pipeline, OneLine(fleet.group),
      fleet.rows.size(), fleet.rows.size() == 1 ? "" : "s",
      versions.empty() ? "" : fmt::format(", version {}", fmt::join(versions, " and ")))};
  std::ranges::move(Aligned(table), std::back_inserter(lines));
  if (const FleetRow left =
          WithoutAWorker(fleet.topics.value_or(std::map<std::string, int>()), total);
      !left.partitions.empty()) {
    lines.push_back("no worker that answered has " + PartitionsText(left, true));
  }
  for (const FleetRow& row : fleet.rows) {
    if (row.trouble.empty()) continue;
    lines.push_back(fmt::format("{}: {}", OneLine(row.worker), OneLine(row.trouble)));
  }
  for (std::string& line : lines) line = Cut(std::move(line), width);
  return lines;
}

}  // namespace fencepost::cli
