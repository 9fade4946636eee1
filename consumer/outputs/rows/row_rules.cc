#include "consumer/outputs/rows/row_rules.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/pipeline/route.h"

namespace fencepost::consumer {
namespace {

using Kind = Selector::Kind;

std::optional<std::size_t> Place(const std::vector<Column>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &Column::name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::optional<RowProblem> TakeKey(const RowRules& rules, RowShape& shape) {
  for (const std::string& name : rules.key) {
    const auto place = Place(shape.columns, name);
    if (!place) {
      return RowProblem{fmt::format("the key column {} is not among the columns", name),
                        fmt::format("add {} to columns, with what names the row", name)};
    }
    if (shape.IsKey(*place)) return RowProblem{fmt::format("key names {} twice", name), ""};
    shape.key.push_back(*place);
  }
  if (!shape.key.empty() || (!shape.updates() && !shape.deletes())) return std::nullopt;
  return RowProblem{fmt::format("{} needs to know which columns name a row",
                                shape.updates() ? "on_conflict: update" : "on_null_value: delete"),
                    "add key: [COLUMN, …]"};
}

std::optional<RowProblem> TakeFence(const RowRules& rules, RowShape& shape) {
  if (rules.fence_column.empty()) {
    if (!rules.fence_by) return std::nullopt;
    return RowProblem{"fence_by without fence_column", "name the column that holds the fence"};
  }
  if (!shape.updates()) {
    return RowProblem{"fence_column counts only with on_conflict: update",
                      "leave it out, or write on_conflict: update"};
  }
  shape.fence = Place(shape.columns, rules.fence_column);
  if (!shape.fence) {
    if (!rules.fence_by) {
      return RowProblem{fmt::format("nothing fills the fence column {}", rules.fence_column),
                        "add fence_by: SELECTOR"};
    }
    shape.fence = shape.columns.size();
    shape.columns.push_back({.name = rules.fence_column, .selector = *rules.fence_by});
  }
  const Column& column = shape.columns[*shape.fence];
  if (rules.fence_by && *rules.fence_by != column.selector) {
    return RowProblem{fmt::format("the fence column {} is filled from {}, and fence_by is {}",
                                  column.name, column.selector.Text(), rules.fence_by->Text()),
                      fmt::format("take {} out of columns: fence_by fills it", column.name)};
  }
  if (shape.IsKey(*shape.fence)) {
    return RowProblem{fmt::format("the fence column {} is part of the key", column.name),
                      "the key names a row, the fence its version"};
  }
  return std::nullopt;
}

// What deletes must be known without a value.
std::optional<RowProblem> CheckDeletes(const RowShape& shape) {
  if (!shape.deletes()) return std::nullopt;
  const auto problem = [&](std::string_view part, const Column& column) {
    return RowProblem{fmt::format("{} {} reads the value ({}), and a tombstone has none", part,
                                  column.name, column.selector.Text()),
                      "take it from key, key:/POINTER or header:NAME"};
  };
  for (const std::size_t place : shape.key) {
    if (shape.columns[place].selector.NeedsValue()) {
      return problem("on_null_value: delete: the key column", shape.columns[place]);
    }
  }
  if (shape.fence && shape.columns[*shape.fence].selector.NeedsValue()) {
    return problem("on_null_value: delete: the fence column", shape.columns[*shape.fence]);
  }
  return std::nullopt;
}

}  // namespace

bool RowShape::IsKey(std::size_t column) const {
  return std::ranges::find(key, column) != key.end();
}

bool RowShape::MayOmit() const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (MayOmit(i)) return true;
  }
  return false;
}

tl::expected<RowShape, RowProblem> ShapeOfRows(const std::vector<Column>& columns,
                                               const RowRules& rules) {
  RowShape shape{.columns = columns,
                 .key = {},
                 .fence = {},
                 .on_conflict = rules.on_conflict,
                 .on_null_value = rules.on_null_value,
                 .keep = rules.keep};
  auto problem = TakeKey(rules, shape);
  if (!problem) problem = TakeFence(rules, shape);
  if (!problem) problem = CheckDeletes(shape);
  if (problem) return tl::unexpected(std::move(*problem));
  shape.takes_null = rules.on_null_value == OnNull::kBad &&
                     std::ranges::any_of(shape.columns, [](const Column& column) {
                       return column.selector.kind == Kind::kValue && column.selector.optional;
                     });
  return shape;
}

RowShape ShapeOfStatement(const std::vector<Selector>& args) {
  RowShape shape;
  shape.takes_null = true;
  shape.statement = true;
  for (const Selector& arg : args) {
    shape.columns.push_back(
        {.name = fmt::format("${}", shape.columns.size() + 1), .selector = arg});
  }
  return shape;
}

namespace {

std::string NameOf(const Effect& effect, std::size_t place) {
  const std::string what = !effect.statement.empty() ? "statement"
                           : effect.route            ? "table by " + effect.route->by.Text()
                                                     : effect.table;
  return fmt::format("effect {} ({}): ", place + 1, what);
}

tl::expected<RowShape, RowProblem> ShapeOf(const Effect& effect) {
  if (!effect.statement.empty()) return ShapeOfStatement(effect.args);
  if (effect.each && effect.rules.on_null_value == OnNull::kDelete) {
    return tl::unexpected(
        RowProblem{"on_null_value: delete with each: a tombstone has no elements",
                   "let the database delete them with the row that they belong to (ON DELETE "
                   "CASCADE)"});
  }
  return ShapeOfRows(effect.columns, effect.rules);
}

}  // namespace

std::string EffectShape::SectionIn(std::string_view output) const {
  return fmt::format("{}{}", output, listed ? ".effects" : "");
}

tl::expected<EffectShapes, RowProblem> ShapesOf(std::vector<Effect> effects, bool listed) {
  EffectShapes shapes;
  const bool several = effects.size() > 1;
  for (Effect& effect : effects) {
    const std::string name = several ? NameOf(effect, shapes.size()) : "";
    auto shape = ShapeOf(effect);
    if (!shape) {
      if (several) shape.error().what = name + shape.error().what;
      return tl::unexpected(std::move(shape.error()));
    }
    shapes.push_back({.shape = std::move(*shape),
                      .tables = NamesOf(effect.table, effect.route),
                      .effect = std::move(effect),
                      .name = name,
                      .listed = listed});
  }
  return shapes;
}

EffectShapes OneShape(RowShape shape) {
  return {{.shape = std::move(shape), .tables = {""}, .effect = {}}};
}

bool IsNumber(const Selector& selector) {
  return selector.kind == Kind::kIndex || selector.kind == Kind::kOffset ||
         selector.kind == Kind::kPartition || selector.kind == Kind::kTimestamp ||
         selector.kind == Kind::kToken;
}

}  // namespace fencepost::consumer
