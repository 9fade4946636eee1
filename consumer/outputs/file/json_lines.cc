#include "consumer/outputs/file/json_lines.h"

#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/record/headers.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

// The record as a whole, but its headers.
std::vector<Column> WholeRecord() {
  std::vector<Column> columns;
  for (const std::string name : {"record_id", "token", "worker", "topic", "partition", "offset",
                                 "timestamp", "key", "value"}) {
    columns.push_back({.name = name, .selector = Selector::Parse(name + "?").value()});
  }
  return columns;
}

}  // namespace

JsonLines::JsonLines(std::vector<Column> columns, std::string worker)
    : whole_(columns.empty()),
      columns_(whole_ ? WholeRecord() : std::move(columns)),
      worker_(std::move(worker)) {}

void JsonLines::AppendHeaders(const Record& record) {
  text_ += R"(,"headers":{)";
  bool first = true;
  for (const auto& [name, value] : LastOfEachName(record.headers)) {
    if (!first) text_ += ',';
    first = false;
    if (simdjson::validate_utf8(name.data(), name.size())) {
      AppendJsonString(name, text_);
    } else {  // a name cannot be an object: its bytes in hex
      text_ += "\"hex:" + ToHex(name) + '"';
    }
    text_ += ':';
    if (value) {
      AppendJsonBytes(*value, text_);
    } else {
      text_ += "null";
    }
  }
  text_ += '}';
}

tl::expected<void, std::string> JsonLines::AppendLine(const WriteItem& item,
                                                      const ItemValue& value) {
  evaluator_.Begin(ContextOf(item, worker_, value));
  text_ += '{';
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (i > 0) text_ += ',';
    AppendJsonString(column.name, text_);
    text_ += ':';
    if (auto done = evaluator_.AppendAsJson(column.selector, text_); !done) {
      return tl::unexpected(fmt::format("column {} from {}: {}", column.name,
                                        column.selector.InWords(), done.error()));
    }
  }
  if (whole_) AppendHeaders(*item.record);
  text_ += "}\n";
  return {};
}

tl::expected<void, std::string> JsonLines::Append(const WriteItem& item) {
  return ForEachValue(item, [&](const ItemValue& value) { return AppendLine(item, value); });
}

const std::string& JsonLines::Fill(const std::vector<WriteItem>& items,
                                   std::vector<WriteOutcome>& outcomes) {
  FENCEPOST_CHECK(items.size() == outcomes.size(), "one outcome an item");
  text_.clear();
  std::set<std::uint64_t> held;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (held.contains(items[i].chain)) {
      outcomes[i].result = WriteResult::kNotWritten;
      continue;
    }
    const std::size_t begin = text_.size();
    if (auto done = Append(items[i]); !done) {
      text_.resize(begin);
      outcomes[i] = {.result = WriteResult::kBadRecord,
                     .detail = OneLine(done.error(), 1000),
                     .shown = OneLine(done.error(), 1000)};
      if (items[i].chain != 0) held.insert(items[i].chain);
    } else if (text_.size() == begin) {
      outcomes[i] = {.result = WriteResult::kNoOutput, .took_rows = false};
    }
  }
  return text_;
}

}  // namespace fencepost::consumer
