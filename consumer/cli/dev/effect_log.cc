#include "consumer/cli/dev/effect_log.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/cli/dev/dev_options.h"
#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/record/text.h"
#include "consumer/testing/stand_in_table.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::cli {
namespace {

using namespace consumer;

constexpr std::size_t kMostId = 100;
constexpr std::size_t kMostLine = 2000;

// Cells as JSON: what is JSON keeps its form, a number is one, all else is a string.
class JsonCells final : public CellTypes {
 public:
  explicit JsonCells(const std::vector<Column>& columns) : columns_(&columns) {}
  [[nodiscard]] std::string_view Name(std::size_t /*column*/) const override { return ""; }
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override {
    const Column& from = (*columns_)[column];
    const Conversion how = from.conversion;
    const CellType to{.kind = KindMadeBy(how), .as_text = true, .elements = true};
    if (how != Conversion::kNone) (void)MakeCell(to, from, type, text, at);
    const std::string cell = text.substr(at);
    const bool number = IsNumber(from.selector) || how == Conversion::kDecimal ||
                        how == Conversion::kInt32 || how == Conversion::kInt64 ||
                        how == Conversion::kBool || (type && *type != JsonType::kString);
    const bool json = (number && (!IsTime(how) || type == JsonType::kArray)) ||
                      (!type && from.selector.kind == Kind::kValue);
    if (json && JsonProblem(cell).empty()) return {};
    text.resize(at);
    AppendJsonBytes(cell, text);
    return {};
  }

 private:
  using Kind = Selector::Kind;
  const std::vector<Column>* columns_;
};

// What the output writes of a record, as rows.
EffectShapes ShapesFor(const OutputOptions& output) {
  const auto part = [](std::string name) {
    return Column{.name = name, .selector = Selector::Parse(name + "?").value()};
  };
  if (FinalityOf(output) == Finality::kLedger) {
    return ShapesOf(StandInFor(output).effects).value_or(EffectShapes());
  }
  std::vector<Column> columns;
  if (const auto* file = std::get_if<FileOptions>(&output)) columns = file->columns;
  if (const auto* lines = std::get_if<StdoutOptions>(&output)) columns = lines->columns;
  if (columns.empty()) columns = {part("key"), part("value")};
  return OneShape({.columns = std::move(columns), .takes_null = true});
}

constexpr std::string_view kWords[][2] = {{"took effect", "took effect"},
                                          {"was done before", "were done before"},
                                          {"is a dead letter", "are dead letters"},
                                          {"failed", "failed"},
                                          {"made no row", "made no row"},
                                          {"was filtered", "were filtered"},
                                          {"lost to a newer row", "lost to newer rows"},
                                          {"is an id conflict", "are id conflicts"}};

std::size_t PlaceOf(ProcessedResult result, bool lost) {
  if (!lost) return static_cast<std::size_t>(result);
  return result == ProcessedResult::kDone ? 6 : 7;
}

}  // namespace

EffectLog::EffectLog(const PipelineOptions& file)
    : target_(TargetOf(file.output)),
      dead_letter_topic_(file.dead_letter ? file.dead_letter->topic : ""),
      by_position_(file.identity.ByPosition()),
      rows_(ShapesFor(file.output), "dev", MakeRecordFilter) {
  const auto* const kafka = std::get_if<KafkaOutputOptions>(&file.output);
  if (kafka == nullptr) return;
  kafka_ = *kafka;
  records_.emplace(kafka_, "dev", nullptr, DecodeOptions::IsWireFormat(file.kafka.decode.key),
                   OutputJq());
}

std::string EffectLog::Records(const WriteItem& item) {
  const auto json = [](const std::optional<std::string_view>& bytes, bool may_be_json) {
    if (!bytes) return std::string("null");
    if (may_be_json && JsonProblem(*bytes).empty()) return std::string(*bytes);
    std::string text;
    AppendJsonBytes(*bytes, text);
    return text;
  };
  std::vector<std::string> records;
  records_->Begin(item);
  for (;;) {
    const auto record = records_->Next();
    if (!record) return "(what was written cannot be shown)";
    if (*record == nullptr) break;
    records.push_back(fmt::format("{}{{\"key\": {}, \"value\": {}}}",
                                  Several() ? fmt::format("{} ", (*record)->topic) : "",
                                  json((*record)->key, false), json((*record)->value, true)));
  }
  return records.empty() ? "no record" : fmt::format("{}", fmt::join(records, ", "));
}

bool EffectLog::Several() const {
  return records_ ? records_->topics().size() > 1 : rows_.tables() > 1;
}

std::string EffectLog::Row(const TableRows& rows, std::size_t row) const {
  std::string text = Several() ? rows.name() + " " : "";
  text += rows.deletes(0, row) ? "deletes {" : "{";
  bool first = true;
  for (std::size_t column = 0; column < rows.columns(); ++column) {
    const bool key = rows.shape().IsKey(column);
    if (rows.omits(0, column, row) || (rows.deletes(0, row) && !key)) continue;
    if (!std::exchange(first, false)) text += ", ";
    AppendJsonString(rows.shape().columns[column].name, text);
    text += fmt::format(": {}", rows.cell(0, column, row).value_or("null"));
  }
  return text + "}";
}

std::string EffectLog::Rows(const WriteItem& item) {
  std::vector<WriteOutcome> outcomes(1);
  std::vector<JsonCells> cells;
  std::vector<CellTypes*> types;
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    cells.emplace_back(rows_.of(table).shape().columns);
  }
  for (JsonCells& of_table : cells) types.push_back(&of_table);
  if (auto filled = rows_.Fill({item}, outcomes, types); !filled || rows_.size() == 0) {
    return "(what was written cannot be shown)";
  }
  std::vector<std::string> rows;
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    const TableRows of = rows_.of(table);
    for (std::size_t row = 0; row < of.rows(0); ++row) rows.push_back(Row(of, row));
  }
  return rows.empty() ? "no row" : fmt::format("{}", fmt::join(rows, ", "));
}

std::string EffectLog::LineOf(ProcessedResult result, const WriteItem& item, bool lost) {
  std::string line = SourceText(*item.where, item.record->offset);
  if (!by_position_ && !item.record_id.empty()) line += " " + OneLine(item.record_id, kMostId);
  switch (result) {
    case ProcessedResult::kDone:
      line += lost        ? fmt::format(" -> {}: a newer row stayed in the place of ", target_)
              : Several() ? " -> "  // each says where it is
                          : fmt::format(" -> {} ", target_);
      line += records_ ? Records(item) : Rows(item);
      break;
    case ProcessedResult::kNoOutput:
      line += " -> no row";
      break;
    case ProcessedResult::kSkipped:
      line += lost ? " -> skipped: id_conflict: its id was processed with other content"
                   : " -> skipped: it was done before";
      break;
    case ProcessedResult::kDeadLettered: {
      const DeadLetter* const letter = item.dead_letter;
      line += fmt::format(" -> dead letter in {}", dead_letter_topic_);
      if (letter != nullptr) line += fmt::format(": {}: {}", letter->error_class, letter->error);
      break;
    }
    case ProcessedResult::kFiltered:
      line += " -> filtered: `when` does not match";
      break;
    case ProcessedResult::kFailed:
      line += " -> failed: the pipeline stops here";
      break;
  }
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20; }, ' ');
  return line.size() > kMostLine ? OneLine(line, kMostLine) : line;
}

void EffectLog::OnProcessed(ProcessedResult result, const WriteItem& item, bool lost) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_ < kLinesPerSecond) {
      ++lines_;
      fmt::print("{}\n", LineOf(result, item, lost));
      std::fflush(stdout);
    } else {
      ++not_shown_;
    }
  }
  ++counts_[PlaceOf(result, lost)];
}

void EffectLog::Tick() {
  const std::lock_guard lock(mutex_);
  lines_ = 0;
  const std::uint64_t more = std::exchange(not_shown_, 0);
  if (more == 0) return;
  fmt::print("… and {} more; {}\n", more, Summary());
  std::fflush(stdout);
}

std::uint64_t EffectLog::Finished() const {
  std::uint64_t sum = 0;
  for (const auto& count : counts_) sum += count;
  return sum;
}

std::string EffectLog::Summary() const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const std::uint64_t count = counts_[i];
    if (count > 0) parts.push_back(fmt::format("{} {}", count, kWords[i][count == 1 ? 0 : 1]));
  }
  const std::uint64_t all = Finished();
  return fmt::format("{} record{}{}{}", all, all == 1 ? "" : "s", all == 0 ? "" : ": ",
                     fmt::join(parts, ", "));
}

}  // namespace fencepost::cli
