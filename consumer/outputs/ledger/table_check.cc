#include "consumer/outputs/ledger/table_check.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/outputs/rows/row_sql.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using Names = std::vector<std::string>;
using Checked = tl::expected<void, OutputError>;

std::string Listed(const Names& names) { return fmt::format("{}", fmt::join(names, ", ")); }

Names NamesOf(const std::vector<ColumnFacts>& columns) {
  Names names;
  for (const ColumnFacts& column : columns) names.push_back(column.name);
  return names;
}

class Check {
 public:
  Check(const TableFacts& facts, const TableTerms& terms) : facts_(facts), terms_(terms) {}

 protected:
  [[nodiscard]] tl::unexpected<OutputError> Bad(std::string what, std::string hint) const {
    return tl::unexpected(SchemaError(terms_.where, std::move(what), std::move(hint)));
  }
  [[nodiscard]] tl::unexpected<OutputError> Denied(std::string_view rights, std::string_view on,
                                                   std::string_view grant) const {
    return tl::unexpected(
        DeniedError(terms_.where, fmt::format("no right to {} {}", rights, on),
                    fmt::format("GRANT {} ON {} to this role", grant, facts_.name)));
  }
  [[nodiscard]] std::string Folded(std::string_view name) const {
    return terms_.exact_names ? std::string(name) : Lower(name);
  }
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view name) const {
    const auto same = [&](const ColumnFacts& c) { return Folded(c.name) == Folded(name); };
    const auto found = std::ranges::find_if(facts_.columns, same);
    if (found == facts_.columns.end()) return std::nullopt;
    return static_cast<std::size_t>(found - facts_.columns.begin());
  }
  // The column that must be filled and is not among `filled`.
  template <typename T>
  [[nodiscard]] const ColumnFacts* Unfilled(const T& filled) const {
    for (const ColumnFacts& column : facts_.columns) {
      const auto same = [&](const auto& f) { return Folded(f.name) == Folded(column.name); };
      if (column.must_fill && !column.generated && std::ranges::none_of(filled, same)) {
        return &column;
      }
    }
    return nullptr;
  }
  [[nodiscard]] std::string InFull(const ColumnFacts& column) const {
    return facts_.name + "." + column.name;
  }

  const TableFacts& facts_;
  const TableTerms& terms_;
};

class EffectsCheck : public Check {
 public:
  EffectsCheck(const TableFacts& facts, const RowShape& shape, const TableTerms& terms)
      : Check(facts, terms), shape_(shape) {}

  tl::expected<std::vector<std::size_t>, OutputError> All() {
    for (const Column& wanted : shape_.columns) {
      const auto place = Find(wanted.name);
      if (!place) {
        return Bad(fmt::format("{} has no column {}", facts_.name, wanted.name),
                   fmt::format("it has {}: add the column, or correct {}.columns",
                               Listed(NamesOf(facts_.columns)), terms_.output));
      }
      if (auto fine = Takes(facts_.columns[*place], wanted.conversion); !fine) {
        return tl::unexpected(fine.error());
      }
      places_.push_back(*place);
    }
    if (const ColumnFacts* column = Unfilled(shape_.columns)) {
      return Bad(fmt::format("{} is NOT NULL without default, and no column mapping fills it",
                             InFull(*column)),
                 fmt::format("add it to {}.columns, or give it a default", terms_.output));
    }
    if (auto fine = Rules(); !fine) return tl::unexpected(fine.error());
    return std::move(places_);
  }

  [[nodiscard]] std::vector<std::string> Advice() const {
    std::vector<std::string> advice;
    for (const Column& wanted : shape_.columns) {
      const auto place = Find(wanted.name);
      if (place && !facts_.columns[*place].folded_by.empty() && NamesRows(wanted.name)) {
        advice.push_back(fmt::format(
            "{} is of a key and is compared by {}, to which keys that differ (a, A) can "
            "be equal: their changes meet in one row, in no order; declare it to "
            "compare bytes",
            InFull(facts_.columns[*place]), facts_.columns[*place].folded_by));
      }
      if (!place || !wanted.selector.optional || wanted.selector.omits) continue;
      const ColumnFacts& column = facts_.columns[*place];
      if (column.takes_null) continue;
      advice.push_back(fmt::format(
          "{} is NOT NULL, and {} gives null where there is nothing: such a record is refused; {} "
          "leaves the column to its DEFAULT{}",
          InFull(column), wanted.selector.Text(), wanted.selector.Text() + "default",
          column.must_fill ? ", and it needs one" : ""));
    }
    return advice;
  }

 private:
  [[nodiscard]] const ColumnFacts& At(std::size_t column) const {
    return facts_.columns[places_[column]];
  }
  // Which row a value means, or is left out for, is told by this column.
  [[nodiscard]] bool NamesRows(std::string_view name) const {
    const auto has = [&](const Names& index) {
      return std::ranges::any_of(index,
                                 [&](const auto& one) { return Folded(one) == Folded(name); });
    };
    const bool key = std::ranges::any_of(
        shape_.key, [&](std::size_t place) { return shape_.columns[place].name == name; });
    return key || (shape_.on_conflict == OnConflict::kIgnore && facts_.unique &&
                   std::ranges::any_of(*facts_.unique, has));
  }

  [[nodiscard]] Checked Takes(const ColumnFacts& column, Conversion conversion) const {
    if (column.generated) {
      return Bad(fmt::format("{} is a generated column", InFull(column)),
                 fmt::format("take it out of {}.columns", terms_.output));
    }
    if (!column.may_insert) return Denied("insert into", InFull(column), "INSERT");
    const auto takes = consumer::Takes(column.cell, conversion);
    if (takes) return {};
    return Bad(fmt::format("{} is {}, which {}.convert: {} cannot fill", InFull(column),
                           column.type, terms_.output, WordOf(conversion)),
               takes.error());
  }

  Checked Rules() {
    if (!shape_.updates() && !shape_.deletes()) return {};
    for (const std::size_t place : shape_.key) {
      if (auto fine = HasOrder(At(place), "a key"); !fine) return fine;
    }
    if (auto fine = Fence(); !fine) return fine;
    if (shape_.updates()) {
      if (auto fine = KeyIsUnique(); !fine) return fine;
    }
    return Rights();
  }

  [[nodiscard]] Checked HasOrder(const ColumnFacts& column, std::string_view as) const {
    if (column.comparison == Comparison::kInexact) {
      return Bad(fmt::format("{} is {}, in which a number such as 0.1 is not found again",
                             InFull(column), column.type),
                 fmt::format("{} needs an exact type, such as bigint or decimal", as));
    }
    if (column.comparison != Comparison::kNone) return {};
    return Bad(fmt::format("{} is {}, which cannot be compared", InFull(column), column.type),
               fmt::format("{} needs a type with an order, such as bigint or timestamptz", as));
  }

  [[nodiscard]] Checked Fence() const {
    if (!shape_.fence) return {};
    const ColumnFacts& column = At(*shape_.fence);
    if (auto fine = HasOrder(column, "a fence"); !fine) return fine;
    const Selector& selector = shape_.columns[*shape_.fence].selector;
    if (column.comparison != Comparison::kText || !IsNumber(selector)) return {};
    return Bad(fmt::format("the fence is {}, a number, and its column {} is {}, so '9' compares "
                           "greater than '10'",
                           selector.Text(), InFull(column), column.type),
               "give the column a numeric type, such as bigint");
  }

  // As ON CONFLICT finds it: on exactly these columns, in any order.
  [[nodiscard]] Checked KeyIsUnique() const {
    if (!facts_.unique) return {};
    Names key;
    Names quoted;
    for (const std::size_t place : shape_.key) {
      key.push_back(Folded(shape_.columns[place].name));
      quoted.push_back(QuoteIdentifier(shape_.columns[place].name, terms_.quote));
    }
    std::ranges::sort(key);
    for (Names index : *facts_.unique) {
      for (std::string& name : index) name = Folded(name);
      std::ranges::sort(index);
      if (index == key) return {};
    }
    const std::string names = Listed(quoted);
    return Bad(fmt::format("{} has no unique index on ({}), so nothing tells which row to update",
                           facts_.name, names),
               fmt::format("CREATE UNIQUE INDEX … ON {} ({}), or correct key", facts_.name, names));
  }

  [[nodiscard]] Checked Rights() const {
    if (shape_.deletes() && !facts_.may_delete) return Denied("DELETE", facts_.name, "DELETE");
    for (std::size_t place = 0; place < shape_.columns.size(); ++place) {
      const ColumnFacts& column = At(place);
      const bool key = shape_.IsKey(place);
      const bool held = shape_.updates() && shape_.MayOmit(place);
      if ((key || held || shape_.fence == place) && !column.may_select) {
        return Denied("SELECT", InFull(column), "SELECT");
      }
      if (shape_.updates() && !key && !column.may_update) {
        return Denied("UPDATE", InFull(column), "UPDATE");
      }
    }
    return {};
  }

  const RowShape& shape_;
  std::vector<std::size_t> places_;
};

class LedgerCheck : public Check {
 public:
  LedgerCheck(const TableFacts& facts, const LedgerTable& ledger, const TableTerms& terms)
      : Check(facts, terms), ledger_(ledger) {}

  [[nodiscard]] Checked All() const {
    if (!facts_.is_table) return NoLedger("is not a table");
    if (facts_.unsafe) return Bad(facts_.name + " " + facts_.unsafe->what, facts_.unsafe->hint);
    for (const LedgerColumn& wanted : ledger_.columns) {
      const auto place = Find(wanted.name);
      if (!place) return NoLedger(fmt::format("has no column {}", wanted.name));
      const std::string& type = facts_.columns[*place].type;
      if (terms_.ledger_types && type != wanted.postgres) {
        return NoLedger(fmt::format("has {} as {}, not {}", wanted.name, type, wanted.postgres));
      }
    }
    if (const ColumnFacts* column = Unfilled(ledger_.columns)) {
      return Bad(fmt::format("{} has {} as NOT NULL without default", facts_.name, column->name),
                 "give it a default");
    }
    const auto is_key = [&](const Names& index) { return Folded(Listed(index)) == ledger_.key; };
    if (!facts_.unique || std::ranges::none_of(*facts_.unique, is_key)) {
      return NoLedger(
          fmt::format("has no primary key ({}): nothing would keep an effect from happening twice",
                      ledger_.key));
    }
    if (facts_.hides_rows) {
      return Bad(facts_.name + " hides rows from this role by row level security",
                 "the ledger needs a role that sees every row");
    }
    const bool changes = ledger_.updates ? facts_.may_update : facts_.may_delete;
    if (facts_.may_select && facts_.may_insert && changes) return {};
    return Denied(
        ledger_.updates ? "read, update and insert into" : "read, insert into and delete from",
        facts_.name, ledger_.updates ? "SELECT, INSERT, UPDATE" : "SELECT, INSERT, DELETE");
  }

 private:
  [[nodiscard]] tl::unexpected<OutputError> NoLedger(const std::string& what) const {
    return Bad(facts_.name + " " + what,
               terms_.ledger_file.empty()
                   ? "rename it; a worker creates a new one"
                   : fmt::format("rename it; a worker creates a new one, or create it with {}",
                                 terms_.ledger_file));
  }

  const LedgerTable& ledger_;
};

class Tables {
 public:
  Tables(Catalogue& catalogue, const LedgerTerms& asked, const TableTerms& terms)
      : catalogue_(catalogue), asked_(asked), terms_(terms) {}

  Checked Effect(const EffectShape& effect) {
    Checked fine;
    for (const std::string& table : effect.tables) {
      if (fine)
        fine = effect.shape.statement ? catalogue_.TakeStatement(effect) : Effects(table, effect);
    }
    if (!fine) fine.error().error.what.insert(0, effect.name);
    return fine;
  }

  // All at once: so they are made, or corrected.
  [[nodiscard]] Checked NoneIsMissing() const {
    if (missing_.empty()) return {};
    const bool one = missing_.size() == 1;
    return tl::unexpected(SchemaError(
        terms_.where, (one ? "there is no table " : "there are no tables ") + Listed(missing_),
        fmt::format("create {} (fencepost tables apply), or correct {}.table{}",
                    one ? "it" : "them", missing_in_, why_missing_)));
  }

  // By position: and the table of the dead letters' ids.
  Checked Ledger() {
    if (auto fine = Ledger(ledger_); !fine || !asked_.by_position) return fine;
    return Ledger(TableOfLedger(/*by_position=*/false));
  }

 private:
  Checked Effects(const std::string& table, const EffectShape& effect) {
    TableTerms terms = terms_;
    terms.output = effect.SectionIn(terms_.output);
    const auto name = SplitTableName(table);
    if (!name) {
      return tl::unexpected(
          SchemaError(terms_.where, name.error(), fmt::format("correct {}.table", terms.output)));
    }
    const auto facts = catalogue_.ReadTable(*name, effect.shape);
    if (!facts) return tl::unexpected(facts.error());
    if (!*facts) {
      if (std::ranges::count(missing_, table) == 0) missing_.push_back(table);
      missing_in_ = terms.output;
      if (why_missing_.empty()) why_missing_ = catalogue_.WhyMissing(*name);
      return {};
    }
    if (auto safe = IsSafe(**facts); !safe) return tl::unexpected(safe.error());
    for (const std::string& line : AdviseOnTable(**facts, effect.shape, terms)) {
      catalogue_.advice.push_back(effect.name + line);
    }
    const auto columns = CheckTable(**facts, effect.shape, terms);
    if (!columns) return tl::unexpected(columns.error());
    catalogue_.TakeTable(*columns);
    return {};
  }

  Checked Ledger(const LedgerTable& ledger) {
    auto facts = catalogue_.ReadLedger(ledger);
    if (!facts) return tl::unexpected(facts.error());
    const bool there = facts->has_value();
    if (there) {
      if (auto fine = Usable(**facts, ledger); !fine) return fine;
    } else if (asked_.missing == MissingLedger::kGone) {
      return tl::unexpected(LedgerGone(ledger.name, terms_.where));
    }
    if (&ledger == &ledger_) {
      if (auto fine = NoOtherRows(there); !fine) return fine;
    }
    if (there) return {};
    if (asked_.missing == MissingLedger::kTell) {
      return tl::unexpected(LedgerMissing(ledger.name, terms_.where, terms_.ledger_file));
    }
    if (auto created = catalogue_.CreateLedger(ledger); !created) {
      OutputError error = std::move(created.error());
      error.error.what = fmt::format("the ledger {} is missing and could not be created: {}",
                                     ledger.name, error.error.what);
      const bool refused =
          error.error.code == "output_denied" || error.error.code == "output_schema";
      if (refused && !terms_.ledger_file.empty()) {
        error.error.hint = fmt::format("create it with {}, as its owner", terms_.ledger_file);
      }
      return tl::unexpected(std::move(error));
    }
    facts = catalogue_.ReadLedger(ledger);
    if (!facts) return tl::unexpected(facts.error());
    if (!*facts) {
      return tl::unexpected(SchemaError(terms_.where, "the ledger was created but is not found",
                                        "check the role's search_path"));
    }
    return Usable(**facts, ledger);
  }

  // A crash, or another transaction, would part the effects from the ledger's rows.
  [[nodiscard]] Checked IsSafe(const TableFacts& facts) const {
    if (!asked_.exactly_once || !facts.unsafe) return {};
    return tl::unexpected(SchemaError(terms_.where,
                                      fmt::format("guarantee: exactly-once cannot be kept: {} {}",
                                                  facts.name, facts.unsafe->what),
                                      facts.unsafe->hint + ", or write guarantee: at-least-once"));
  }

  [[nodiscard]] Checked Usable(const TableFacts& facts, const LedgerTable& ledger) const {
    if (auto safe = IsSafe(facts); !safe) return safe;
    return CheckLedger(facts, ledger, terms_);
  }

  // `own`: the ledger that is read is there.
  Checked NoOtherRows(bool own) {
    if (own) {
      const auto rows = catalogue_.HasRows(ledger_, asked_.pipeline);
      if (!rows) return tl::unexpected(rows.error());
      if (*rows) return {};
    }
    const auto other = catalogue_.HasRows(TableOfLedger(!asked_.by_position), asked_.pipeline);
    if (!other) return tl::unexpected(other.error());
    if (!*other) return {};
    return tl::unexpected(OtherRowsLeft(asked_.pipeline, terms_.where, asked_.by_position));
  }

  Catalogue& catalogue_;
  const LedgerTerms& asked_;
  const TableTerms& terms_;
  Names missing_;  // of the file
  std::string missing_in_, why_missing_;
  const LedgerTable& ledger_ = TableOfLedger(asked_.by_position);
};

}  // namespace

OutputError SchemaError(std::string where, std::string what, std::string hint) {
  return {.error = {.code = "output_schema",
                    .what = std::move(what),
                    .where = std::move(where),
                    .hint = std::move(hint)}};
}

OutputError DeniedError(std::string where, std::string what, std::string hint) {
  OutputError error = SchemaError(std::move(where), std::move(what), std::move(hint));
  error.error.code = "output_denied";
  return error;
}

tl::expected<std::vector<std::size_t>, OutputError> CheckTable(const TableFacts& facts,
                                                               const RowShape& shape,
                                                               const TableTerms& terms) {
  return EffectsCheck(facts, shape, terms).All();
}

std::vector<std::string> AdviseOnTable(const TableFacts& facts, const RowShape& shape,
                                       const TableTerms& terms) {
  return EffectsCheck(facts, shape, terms).Advice();
}

Checked CheckLedger(const TableFacts& facts, const LedgerTable& ledger, const TableTerms& terms) {
  return LedgerCheck(facts, ledger, terms).All();
}

Checked LearnTables(Catalogue& catalogue, const EffectShapes& effects, const LedgerTerms& asked,
                    const TableTerms& terms) {
  Tables tables(catalogue, asked, terms);
  Checked fine;
  for (const EffectShape& effect : effects) {
    if (!fine && fine.error().error.code != "output_schema") break;
    if (auto one = tables.Effect(effect); fine && !one) fine = one;
  }
  if (auto all = tables.NoneIsMissing(); !all) return all;
  return fine ? tables.Ledger() : fine;
}

}  // namespace fencepost::consumer
