#include "consumer/outputs/rows/batch_rows.h"

#include <algorithm>
#include <cctype>
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

namespace {

// Tables of one name may be one table: `public.events`, `Events`.
std::string LastName(std::string_view table) {
  std::string name(table.substr(table.rfind('.') + 1));
  std::erase_if(name, [](char c) { return c == '"' || c == '`'; });
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

BatchRows::BatchRows(EffectShapes effects, std::string worker, const MakeFilter& make_filter)
    : effects_(std::move(effects)), worker_(std::move(worker)) {
  for (const EffectShape& effect : effects_) {
    const FilterOptions& when = effect.effect.when;
    choosers_.push_back({.first_table = tables_.size(), .filter = nullptr});
    if (!when.program.empty()) {
      FENCEPOST_CHECK(make_filter, "jq in an effect, and nobody to run it");
      auto made = make_filter(when);
      if (made) choosers_.back().filter = std::move(*made);
      if (!made) problem_ = made.error().Line();
    } else if (!when.all.empty()) {
      choosers_.back().filter = MakeConditionFilter(when.all);
    }
    for (const std::string& table : effect.tables) {
      tables_.push_back(
          {.effect = &effect, .name = table, .may_omit = effect.shape.MayOmit(), .rows = {}});
      may_omit_ = may_omit_ || tables_.back().may_omit;
    }
    ordered_ = ordered_ || effect.shape.ordered();
    bounded_ = bounded_ || effects_.size() > 1 || effect.effect.each;
  }
  one_a_chain_ = tables_.size() > 1 && DependOnOrder();
}

// Whether a later record's row of one effect may undo an earlier record's of another: by a
// deletion, which may cascade, a statement, or since two effects share a table.
bool BatchRows::DependOnOrder() const {
  for (const Table& table : tables_) {
    const RowShape& shape = table.effect->shape;
    if (shape.deletes() || shape.statement) return true;
    const bool shared = std::ranges::any_of(tables_, [&](const Table& other) {
      return &other != &table && LastName(other.name) == LastName(table.name);
    });
    if (shared && shape.ordered()) return true;
  }
  return false;
}

tl::expected<void, std::string> BatchRows::EvaluateCell(std::size_t place, std::size_t column,
                                                        bool must_stand) {
  Table& table = tables_[place];
  const RowShape& shape = table.effect->shape;
  const Column& from = shape.columns[column];
  CellTypes* const types = types_.empty() ? nullptr : types_[place];
  const std::size_t at = text_.size();
  auto found = evaluator_.Append(from.selector, text_);
  const std::string_view type = types == nullptr ? "" : types->Name(column);
  const CellType* const to = types == nullptr ? nullptr : types->Type(column);
  if (!found || (!*found && must_stand)) {
    return tl::unexpected(fmt::format("{}: {}", Cell(table, element_, column, type),
                                      found ? "a key cannot be null" : found.error()));
  }
  const bool omitted = table.may_omit && IsOmitted(place, column, *found, at);
  if (omitted) {
    text_.resize(at);
    table.rows.back().omits = true;
  } else if (*found && types != nullptr && !refused_) {
    if (auto fine = types->Convert(column, evaluator_.type(), text_, at); !fine) {
      refused_ = OneLine(Cell(table, element_, column, type) + " " + fine.error(), 1000);
    }
  } else if (!*found && to != nullptr && to->replaces_null && !refused_) {
    refused_ =
        OneLine(Cell(table, element_, column, type) + " is null, and the column takes none", 1000);
  }
  cells_.push_back(
      {.at = at, .size = text_.size() - at, .null = omitted || !*found, .omitted = omitted});
  return {};
}

// What the last Append found.
bool BatchRows::IsOmitted(std::size_t place, std::size_t column, bool found, std::size_t at) const {
  const RowShape& shape = tables_[place].effect->shape;
  if (!shape.MayOmit(column)) return false;
  if (!found) return shape.columns[column].selector.omits && evaluator_.absent();
  Conversion encoding = shape.columns[column].conversion;
  if (encoding == Conversion::kDecimal) encoding = Conversion::kBase64;
  if (encoding != Conversion::kBase64 && encoding != Conversion::kHex) {
    const CellType* const to = types_.empty() ? nullptr : types_[place]->Type(column);
    const bool bytes = to != nullptr && to->kind == CellKind::kBytes;
    encoding = bytes ? Conversion::kBase64 : Conversion::kNone;
  }
  return IsKept(shape.keep, evaluator_.type(), std::string_view(text_).substr(at), encoding);
}

std::string BatchRows::KeyOf(const Table& table, const Row& row) const {
  std::string key = std::to_string(&table - tables_.data()) + ' ';
  for (const std::size_t column : table.effect->shape.key) {
    const Span& cell = cells_[row.first_cell + column];
    key += std::to_string(cell.size) + ' ';
    key += View(cell);
  }
  return key;
}

bool BatchRows::ComesFirst() {
  own_keys_.clear();
  if (!may_omit_) return true;
  for (const Table& table : tables_) {
    const RowShape& shape = table.effect->shape;
    if (!table.may_omit || (!shape.updates() && !shape.deletes())) continue;
    for (std::size_t row = table.begun; row < table.rows.size(); ++row) {
      std::string key = KeyOf(table, table.rows[row]);
      const bool first = !keys_.contains(key) && !own_keys_.contains(key);
      if (!first && table.rows[row].omits) return false;
      own_keys_.insert(std::move(key));
    }
  }
  return true;
}

std::string TableRows::About(std::size_t record, std::size_t row, std::size_t column,
                             std::string_view type, std::string_view what) const {
  return OneLine(
      fmt::format("{}: {}", batch_->Cell(*table_, at(record, row).element, column, type), what),
      1000);
}

std::string BatchRows::Where(const Table& table, std::optional<std::size_t> element) {
  std::string where = table.effect->name;
  if (table.effect->effect.route) where += table.name + ": ";
  if (element) where += fmt::format("element {}: ", *element + 1);
  return where;
}

std::string BatchRows::Cell(const Table& table, std::optional<std::size_t> element,
                            std::size_t column, std::string_view type) const {
  const RowShape& shape = table.effect->shape;
  const Column& from = shape.columns[column];
  return fmt::format("{}{} {}{}{}{} from {}", Where(table, element),
                     shape.statement ? "argument" : "column", from.name, type.empty() ? "" : " (",
                     type, type.empty() ? "" : ")", from.selector.InWords());
}

void BatchRows::Clear() {
  text_.clear();
  cells_.clear();
  for (Table& table : tables_) {
    table.rows.clear();
    table.one_row_each = true;
  }
  extents_.clear();
  records_.clear();
  keys_.clear();
  chains_.clear();
  filled_.clear();
  bytes_ = 0;
}

bool BatchRows::AddRecord(const WriteItem& item, std::size_t index, std::size_t begin) {
  const std::size_t extents = extents_.size();
  std::size_t all = 0;
  for (Table& table : tables_) {
    const std::size_t rows = table.rows.size() - table.begun;
    extents_.push_back({.first_row = table.begun, .rows = rows});
    all += rows;
    if (rows != 1 || table.rows[table.begun].deletes || table.rows[table.begun].omits) {
      table.one_row_each = false;
    }
  }
  const std::size_t source = text_.size();
  text_ += SourceText(*item.where, item.record->offset);
  records_.push_back(
      {.item = &item,
       .index = index,
       .extents = extents,
       .bytes = text_.size() - begin + item.record_id.size() + 64 * std::max<std::size_t>(all, 1),
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
                                                std::span<CellTypes* const> types,
                                                Refused refused) {
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
    const std::size_t begin = begin_ = text_.size();
    if (one_a_chain_ && item.chain != 0 && !chains_.insert(item.chain).second) break;
    std::size_t rows = 0;
    for (Table& table : tables_) table.begun = table.rows.size();
    if (apart) refused_.reset();
    const bool refused_before = refused_.has_value();
    tl::expected<void, std::string> done;
    if (item.dead_letter == nullptr) done = EvaluateItem(item);
    element_.reset();
    for (const Table& table : tables_) rows += table.rows.size() - table.begun;
    if (done && bounded_ && rows > kMostRows) {
      done = tl::unexpected(
          fmt::format("it makes {} rows, and a record may make {}", rows, kMostRows));
    }
    const bool first = !done || ComesFirst();
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
    } else if (!AddRecord(item, end, begin)) {
      break;
    }
  }
  types_ = {};
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
    for (std::size_t table = 0; table < tables_.size(); ++table) {
      const auto [first_row, rows] = extents_[record.extents + table];
      const std::size_t columns = tables_[table].effect->shape.columns.size();
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t begin = tables_[table].rows[first_row + row].first_cell;
        for (std::size_t cell = begin; cell < begin + columns; ++cell) {
          count += !cells_[cell].null && quotes(View(cells_[cell])) ? 1 : 0;
        }
      }
    }
    if (count < most) continue;
    if (count > most) found.clear();
    most = count;
    found.push_back(record.place);
  }
  return found;
}

void BatchRows::Sort() {
  if (!ordered_) {
    std::ranges::sort(records_, {}, [](const Entry& entry) { return entry.item->record_id; });
  }
  by_id_.resize(records_.size());
  std::iota(by_id_.begin(), by_id_.end(), 0);
  const auto id = [this](std::size_t record) { return item(record).record_id; };
  if (ordered_) std::ranges::sort(by_id_, {}, id);
  const auto twice = std::ranges::adjacent_find(by_id_, {}, id);
  FENCEPOST_CHECK(twice == by_id_.end(), id(*twice));
}

std::optional<std::string_view> TableRows::cell(std::size_t record, std::size_t column,
                                                std::size_t row) const {
  const BatchRows::Span& span = batch_->cells_[at(record, row).first_cell + column];
  if (span.null) return std::nullopt;
  return batch_->View(span);
}

std::string TableRows::WhereKey(std::size_t record, const std::vector<std::string>& columns,
                                std::string_view values) const {
  if (rows(record) == 1) return Where(record, 0);
  std::vector<std::size_t> named;
  for (std::size_t row = 0; row < rows(record) && !columns.empty(); ++row) {
    if (HasKey(record, row, columns, values)) named.push_back(row);
  }
  if (named.size() == 1 && at(record, named[0]).element) return Where(record, named[0]);
  return fmt::format("{}one of its {} rows: ", Where(), rows(record));
}

bool TableRows::HasKey(std::size_t record, std::size_t row, const std::vector<std::string>& columns,
                       std::string_view values) const {
  std::string key;
  for (const std::string& name : columns) {
    const auto& all = shape().columns;
    const auto column = std::ranges::find(all, name, &Column::name);
    const auto text = column == all.end()
                          ? std::nullopt
                          : cell(record, static_cast<std::size_t>(column - all.begin()), row);
    if (!text) return false;
    key.append(key.empty() ? "" : ", ").append(*text);
  }
  return values.starts_with(key + ")");
}

bool TableRows::any() const {
  for (std::size_t record = 0; record < batch_->size(); ++record) {
    if (rows(record) > 0) return true;
  }
  return false;
}

std::size_t BatchRows::rows(std::size_t record) const {
  std::size_t rows = 0;
  for (std::size_t table = 0; table < tables_.size(); ++table) rows += ExtentOf(record, table).rows;
  return rows;
}

bool BatchRows::takes_rows(std::size_t record) const {
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    const auto [first, rows] = ExtentOf(record, table);
    for (std::size_t row = first; row < first + rows; ++row) {
      if (!tables_[table].rows[row].deletes) return true;
    }
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
