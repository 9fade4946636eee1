// What the pipeline file says of rows (columns, key, fence, conflicts, tombstones), looked at as a
// whole and checked as far as that goes without a database. Values; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct RowShape {
  std::vector<Column> columns;   // the options', and the fence column where it is not among them
  std::vector<std::size_t> key;  // by place in `columns`
  std::optional<std::size_t> fence;  // likewise
  OnConflict on_conflict = OnConflict::kError;
  OnNull on_null_value = OnNull::kBad;
  bool statement = false;         // the columns are the arguments $1… of a statement
  std::vector<std::string> keep;  // RowRules::keep
  bool takes_null = false;  // a null value is for the selectors to judge, not for on_null_value

  [[nodiscard]] bool deletes() const { return on_null_value == OnNull::kDelete; }
  [[nodiscard]] bool updates() const { return on_conflict == OnConflict::kUpdate; }
  [[nodiscard]] bool IsKey(std::size_t column) const;
  // A row may leave this column out.
  [[nodiscard]] bool MayOmit(std::size_t column) const {
    return !statement && !IsKey(column) && fence != column &&
           (columns[column].selector.omits || !keep.empty());
  }
  [[nodiscard]] bool MayOmit() const;  // any
  // What becomes of a row depends on which of the batch's records comes first.
  [[nodiscard]] bool ordered() const {
    return on_conflict != OnConflict::kError || deletes() || statement;
  }
};

struct RowProblem {
  std::string what, hint;
};

// An effect: the shape of its rows, and the tables that they may go into.
struct EffectShape {
  RowShape shape;
  std::vector<std::string> tables;  // of a statement one without a name
  Effect effect;
  // "effect 2 (order_lines): ", where there are several; else empty.
  std::string name{};
  bool listed = true;  // ShapesOf
  // Where the file says it: `output` ("output.mysql"), or its effects.
  [[nodiscard]] std::string SectionIn(std::string_view output) const;
};
using EffectShapes = std::vector<EffectShape>;

// on_null_value: bad leaves a tombstone to the selectors where a column is `value?`, which says
// that null is fine there.
tl::expected<RowShape, RowProblem> ShapeOfRows(const std::vector<Column>& columns,
                                               const RowRules& rules);
RowShape ShapeOfStatement(const std::vector<Selector>& args);
// `listed`: the file has them as `effects`; else the one is said by the output's own keys.
tl::expected<EffectShapes, RowProblem> ShapesOf(std::vector<Effect> effects, bool listed = true);
template <typename Output>
requires requires(const Output& output) { output.effects; }
tl::expected<EffectShapes, RowProblem> ShapesOf(const Output& output) {
  return ShapesOf(EffectsOf(output), !output.effects.empty());
}
// Of one table without a name.
EffectShapes OneShape(RowShape shape);

// Its text is that of a number, whatever the record.
bool IsNumber(const Selector& selector);

}  // namespace fencepost::consumer
