#include "consumer/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using nlohmann::json;

// Whoever answers may say anything: sums of these are numbers yet.
double Within(double number, double most) { return number > 0 ? std::min(number, most) : 0; }
std::int64_t Count(const json& number) {
  return static_cast<std::int64_t>(Within(number.get<double>(), 1e15));
}

void Join(std::string& to, std::string_view separator, const std::string& more) {
  if (more.empty()) return;
  to += to.empty() ? "" : separator;
  to += more;
}

void Take(const json& pipeline, FleetRow& row) {
  row.state = pipeline.at("ready").get<bool>() ? FleetState::kReady : FleetState::kNotReady;
  row.lag = Count(pipeline.at("lag"));
  row.rate = Within(pipeline.at("records_per_second").get<double>(), 1e15);
  const json& counts = pipeline.at("counts");
  row.contended = Count(counts.at("lock_contended"));
  for (const json& one : counts.at("lock_expired")) row.expired += Count(one);
  row.lost = Count(counts.at("lock_losses"));
  row.letters = Count(counts.at("dead_lettered"));
  for (const json& part : pipeline.at("partitions")) {
    row.partitions[part.at("topic").get<std::string>()].insert(
        static_cast<std::int32_t>(Within(part.at("partition").get<double>(), 1e9)));
    if (const auto age = part.find("oldest_age_seconds"); age != part.end()) {
      row.oldest = std::max(row.oldest.value_or(0), Within(age->get<double>(), 1e10));
    }
  }
  for (const json& reason : pipeline.at("reasons")) {
    Join(row.trouble, "; ", OneLine(reason.get<std::string>()));
  }
}

}  // namespace

FleetRow RowOf(const FleetAnswer& answer, const std::string& pipeline) {
  FleetRow row{.worker = answer.worker.empty() ? answer.address : answer.worker,
               .address = answer.address};
  const auto without = [&](FleetState state, const std::string& why) {
    FleetRow none{.worker = row.worker, .address = row.address, .version = row.version};
    none.state = state;
    Join(none.trouble, ": ", answer.address);
    Join(none.trouble, ": ", why);
    return none;
  };
  if (!answer.status) return without(FleetState::kSilent, answer.status.error());
  try {
    const json status = json::parse(*answer.status);
    row.worker = status.at("worker").get<std::string>();
    if (!answer.worker.empty() && answer.worker != row.worker) {
      const std::string other = std::exchange(row.worker, answer.worker);
      return without(FleetState::kSilent,
                     fmt::format("{} answers there, not {}: give each observe.advertise", other,
                                 answer.worker));
    }
    row.version = OneLine(status.at("version").get<std::string>(), 40);
    for (const json& one : status.at("pipelines")) {
      if (one.at("pipeline") == pipeline) Take(one, row);
    }
  } catch (const json::exception&) {
    return without(FleetState::kSilent, "its /status is none of a worker of this version");
  }
  return row.answered() ? row : without(FleetState::kOther, "it has no pipeline " + pipeline);
}

FleetRow TotalOf(const Fleet& fleet) {
  FleetRow total{.worker = "all"};
  for (const FleetRow& row : fleet.rows) {
    if (!row.answered()) continue;
    total.state = FleetState::kReady;
    total.lag += row.lag;
    total.rate += row.rate;
    total.contended += row.contended;
    total.expired += row.expired;
    total.lost += row.lost;
    total.letters += row.letters;
    if (row.oldest) total.oldest = std::max(total.oldest.value_or(0), *row.oldest);
    for (const auto& [topic, partitions] : row.partitions) {
      total.partitions[topic].insert(partitions.begin(), partitions.end());
    }
  }
  return total;
}

PartitionsByTopic WithoutAWorker(const Fleet& fleet) {
  PartitionsByTopic left;
  if (!fleet.topics) return left;
  const FleetRow total = TotalOf(fleet);
  for (const auto& [topic, count] : *fleet.topics) {
    const auto had = total.partitions.find(topic);
    for (std::int32_t partition = 0; partition < count; ++partition) {
      if (had != total.partitions.end() && had->second.contains(partition)) continue;
      left[topic].insert(partition);
    }
  }
  return left;
}

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

std::string PartitionsText(const PartitionsByTopic& partitions, bool several) {
  std::string text;
  for (const auto& [topic, numbers] : partitions) {
    const std::string ranges = RangesOf(numbers);
    Join(text, "; ", several ? fmt::format("{} {}", OneLine(topic), ranges) : ranges);
  }
  return text;
}

}  // namespace fencepost::consumer
