#include "consumer/outputs/rows/batch_rows.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/outputs/rows/kept_values.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {

BatchRows::BatchRows(RowShape shape, std::string worker)
    : shape_(std::move(shape)), worker_(std::move(worker)), may_omit_(shape_.MayOmit()) {}

BatchRows::BatchRows(std::vector<Column> columns, std::string worker)
    : BatchRows(RowShape{.columns = std::move(columns), .key = {}, .fence = {}},
                std::move(worker)) {}

tl::expected<void, std::string> BatchRows::EvaluateCell(std::size_t column, bool must_stand) {
  const Column& from = shape_.columns[column];
  const std::size_t at = text_.size();
  auto found = evaluator_.Append(from.selector, text_);
  const std::string_view type = types_ == nullptr ? "" : types_->Name(column);
  const CellType* const to = types_ == nullptr ? nullptr : types_->Type(column);
  if (!found || (!*found && must_stand)) {
    return tl::unexpected(
        About(column, type, found ? "a key cannot be null" : std::string_view(found.error())));
  }
  const bool omitted = may_omit_ && IsOmitted(column, *found, at);
  if (omitted) {
    text_.resize(at);
    rows_.back().omits = true;
  } else if (*found && types_ != nullptr && !refused_) {
    if (auto fine = types_->Convert(column, evaluator_.type(), text_, at); !fine) {
      refused_ = OneLine(Cell(column, type) + " " + fine.error(), 1000);
    }
  } else if (!*found && to != nullptr && to->replaces_null && !refused_) {
    refused_ = OneLine(Cell(column, type) + " is null, and the column takes none", 1000);
  }
  cells_.push_back(
      {.at = at, .size = text_.size() - at, .null = omitted || !*found, .omitted = omitted});
  return {};
}

// What the last Append found.
bool BatchRows::IsOmitted(std::size_t column, bool found, std::size_t at) const {
  if (!shape_.MayOmit(column)) return false;
  if (!found) return shape_.columns[column].selector.omits && evaluator_.absent();
  Conversion encoding = shape_.columns[column].conversion;
  if (encoding == Conversion::kDecimal) encoding = Conversion::kBase64;
  if (encoding != Conversion::kBase64 && encoding != Conversion::kHex) {
    const CellType* const to = types_ == nullptr ? nullptr : types_->Type(column);
    const bool bytes = to != nullptr && to->kind == CellKind::kBytes;
    encoding = bytes ? Conversion::kBase64 : Conversion::kNone;
  }
  return IsKept(shape_.keep, evaluator_.type(), std::string_view(text_).substr(at), encoding);
}

std::string BatchRows::KeyOf(const Row& row) const {
  std::string key;
  for (const std::size_t column : shape_.key) {
    const Span& cell = cells_[row.first_cell + column];
    key += std::to_string(cell.size) + ' ';
    key += View(cell);
  }
  return key;
}

bool BatchRows::ComesFirst(std::size_t first_row) {
  own_keys_.clear();
  if (!may_omit_ || (!shape_.updates() && !shape_.deletes())) return true;
  for (std::size_t row = first_row; row < rows_.size(); ++row) {
    std::string key = KeyOf(rows_[row]);
    const bool first = !keys_.contains(key) && !own_keys_.contains(key);
    if (!first && rows_[row].omits) return false;
    own_keys_.insert(std::move(key));
  }
  return true;
}

std::string BatchRows::About(std::size_t column, std::string_view type,
                             std::string_view what) const {
  return OneLine(fmt::format("{}: {}", Cell(column, type), what), 1000);
}

std::string BatchRows::Cell(std::size_t column, std::string_view type) const {
  const Column& from = shape_.columns[column];
  return fmt::format("{} {}{}{}{} from {}", shape_.statement ? "argument" : "column", from.name,
                     type.empty() ? "" : " (", type, type.empty() ? "" : ")",
                     from.selector.InWords());
}

tl::expected<void, std::string> BatchRows::EvaluateRow(const WriteItem& item,
                                                       const ItemValue& value) {
  const bool null = !value && !shape_.takes_null;
  if (null && shape_.on_null_value == OnNull::kSkip) return {};
  if (null && shape_.on_null_value == OnNull::kBad) {
    return tl::unexpected<std::string>(
        item.values == nullptr ? "the value is null (see on_null_value)"
                               : "the handler's answer is null or has no body (see on_null_value)");
  }
  evaluator_.Begin(ContextOf(item, worker_, value));
  rows_.push_back({.first_cell = cells_.size(), .deletes = null});
  for (std::size_t column = 0; column < shape_.columns.size(); ++column) {
    const bool key = (null || shape_.updates()) && shape_.IsKey(column);
    if (null && !key && shape_.fence != column) {
      cells_.push_back({.at = text_.size(), .size = 0, .null = true});
      continue;
    }
    if (auto done = EvaluateCell(column, key); !done) return done;
  }
  return {};
}

void BatchRows::Clear() {
  text_.clear();
  cells_.clear();
  rows_.clear();
  records_.clear();
  keys_.clear();
  filled_.clear();
  bytes_ = 0;
  one_row_each_ = true;
}

bool BatchRows::AddRecord(const WriteItem& item, std::size_t index, std::size_t first_row,
                          std::size_t begin) {
  const std::size_t rows = rows_.size() - first_row;
  if (rows != 1 || rows_[first_row].deletes || rows_[first_row].omits) one_row_each_ = false;
  const std::size_t source = text_.size();
  text_ += SourceText(*item.where, item.record->offset);
  records_.push_back(
      {.item = &item,
       .index = index,
       .first_row = first_row,
       .rows = rows,
       .bytes = text_.size() - begin + item.record_id.size() + 64 * std::max<std::size_t>(rows, 1),
       .source = {.at = source, .size = text_.size() - source, .null = false}});
  bytes_ += records_.back().bytes;
  if (bytes_ <= kMostBytes || records_.size() == 1) {
    keys_.merge(own_keys_);
    return true;
  }
  records_.pop_back();
  return false;
}

tl::expected<void, std::string> BatchRows::Fill(const std::vector<WriteItem>& items,
                                                std::vector<WriteOutcome>& outcomes,
                                                CellTypes* types, Refused refused) {
  FENCEPOST_CHECK(items.size() == outcomes.size(), "one outcome an item");
  Clear();
  types_ = types;
  refused_.reset();
  const bool apart = refused == Refused::kApart;
  std::set<std::uint64_t> held;
  bool bad = false;
  std::size_t end = 0;
  const auto refuse = [&](const std::string& why, DeadLetterReason reason) {
    const std::string line = OneLine(why, 1000);
    outcomes[end] = {
        .result = WriteResult::kBadRecord, .detail = line, .reason = reason, .shown = line};
    if (items[end].chain != 0) held.insert(items[end].chain);
  };
  for (; end < items.size() && bytes_ <= kMostBytes; ++end) {
    const WriteItem& item = items[end];
    if (apart && held.contains(item.chain)) {
      outcomes[end].result = WriteResult::kNotWritten;
      continue;
    }
    const std::size_t begin = text_.size();
    const std::size_t first_row = rows_.size();
    if (apart) refused_.reset();
    const bool refused_before = refused_.has_value();
    tl::expected<void, std::string> done;
    if (item.dead_letter == nullptr) {
      done = ForEachValue(item, [&](const ItemValue& value) { return EvaluateRow(item, value); });
    }
    const bool first = !done || ComesFirst(first_row);
    if (!first && !records_.empty()) {
      if (!refused_before) refused_.reset();  // it was about this one
      break;
    }
    if (!first) {
      done = tl::unexpected<std::string>(
          "several rows of one key, of which a later one leaves a column out");
    }
    if (!done) {
      refuse(done.error(), DeadLetterReason::kBadRecord);
      bad = true;
    } else if (apart && refused_) {
      refuse(*std::exchange(refused_, std::nullopt), DeadLetterReason::kOutput);
    } else if (!AddRecord(item, end, first_row, begin)) {
      break;
    }
  }
  types_ = nullptr;
  const bool none = !apart && (bad || refused_);
  if (none) Clear();
  for (std::size_t i = none ? 0 : end; i < items.size(); ++i) {
    if (outcomes[i].result != WriteResult::kBadRecord) {
      outcomes[i].result = WriteResult::kNotWritten;
    }
  }
  Sort();
  for (std::size_t i = 0; i < records_.size(); ++i) records_[i].place = i;
  // What is bad is told first; the others come again without it.
  if (refused_ && !bad) return tl::unexpected(*refused_);
  return {};
}

void BatchRows::Select(const std::vector<std::size_t>& places) {
  if (filled_.empty()) filled_ = records_;
  records_.clear();
  for (const std::size_t place : places) records_.push_back(filled_[place]);
  std::ranges::sort(records_, {}, &Entry::place);
  Sort();
}

std::vector<std::size_t> BatchRows::Quoted(std::string_view text) const {
  const auto quotes = [text](std::string_view cell) {
    if (cell.empty()) return false;
    for (auto at = text.find(cell); at != std::string_view::npos; at = text.find(cell, at + 1)) {
      const std::size_t end = at + cell.size();
      if (at > 0 && end < text.size() &&
          std::string_view("\"'( ").find(text[at - 1]) != std::string_view::npos &&
          std::string_view("\"'),").find(text[end]) != std::string_view::npos) {
        return true;
      }
    }
    return false;
  };
  std::vector<std::size_t> found;
  std::size_t most = 1;
  for (const Entry& record : records_) {
    std::size_t count = 0;
    const std::size_t first = record.rows == 0 ? 0 : rows_[record.first_row].first_cell;
    for (std::size_t cell = first; cell < first + record.rows * columns(); ++cell) {
      count += !cells_[cell].null && quotes(View(cells_[cell])) ? 1 : 0;
    }
    if (count < most) continue;
    if (count > most) found.clear();
    most = count;
    found.push_back(record.place);
  }
  return found;
}

void BatchRows::Sort() {
  if (!shape_.ordered()) {
    std::ranges::sort(records_, {}, [](const Entry& entry) { return entry.item->record_id; });
  }
  by_id_.resize(records_.size());
  std::iota(by_id_.begin(), by_id_.end(), 0);
  const auto id = [this](std::size_t record) { return item(record).record_id; };
  if (shape_.ordered()) std::ranges::sort(by_id_, {}, id);
  const auto twice = std::ranges::adjacent_find(by_id_, {}, id);
  FENCEPOST_CHECK(twice == by_id_.end(), id(*twice));
}

std::optional<std::string_view> BatchRows::cell(std::size_t record, std::size_t column,
                                                std::size_t row) const {
  const Span& span = cells_[rows_[records_[record].first_row + row].first_cell + column];
  if (span.null) return std::nullopt;
  return View(span);
}

bool BatchRows::takes_rows(std::size_t record) const {
  for (std::size_t row = 0; row < rows(record); ++row) {
    if (!deletes(record, row)) return true;
  }
  return false;
}

std::optional<std::size_t> BatchRows::Find(std::string_view record_id) const {
  const auto id = [this](std::size_t record) { return item(record).record_id; };
  const auto at = std::ranges::lower_bound(by_id_, record_id, {}, id);
  if (at == by_id_.end() || id(*at) != record_id) return std::nullopt;
  return *at;
}

}  // namespace fencepost::consumer
