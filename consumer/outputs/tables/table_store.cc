#include "consumer/outputs/tables/table_store.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/outputs/tables/column_types.h"

namespace fencepost::consumer {

std::unique_ptr<TableStore> MakeTableStore(const OutputOptions& output) {
  if (const auto* postgres = std::get_if<PostgresOptions>(&output)) {
    return MakePostgresTables(*postgres);
  }
  if (const auto* mysql = std::get_if<MysqlOptions>(&output)) return MakeMysqlTables(*mysql);
  if (const auto* sqlite = std::get_if<SqliteOptions>(&output)) return MakeSqliteTables(*sqlite);
  return nullptr;
}

TableStore::Answer<FoundTables> FindTables(Catalogue& catalogue,
                                           const std::vector<WantedTable>& wanted, bool by_position,
                                           Dialect dialect) {
  FoundTables found;
  for (const WantedTable& table : wanted) {
    const auto name = SplitTableName(table.name);
    if (!name) return tl::unexpected(SchemaError(table.name, name.error(), ""));
    auto facts = catalogue.ReadTable(*name, table.shape);
    if (!facts) return tl::unexpected(facts.error());
    const bool there = facts->has_value();
    found.tables.push_back(std::move(*facts));
    if (!there && name->size() > 1) {
      const auto schema = catalogue.HasSchema(name->front());
      if (!schema) return tl::unexpected(schema.error());
      if (!*schema) found.missing_schemas.insert(name->front());
    }
    for (std::size_t i = 0; there && i < table.columns.size(); ++i) {
      const std::string& type = table.columns[i].type;
      if (type.empty() || found.types.contains(type)) continue;
      auto written = catalogue.TypeInFull(type);
      if (!written) return tl::unexpected(written.error());
      found.types[type] = TypeInCatalogue(*written, dialect);
    }
  }
  for (const bool positions : {false, true}) {
    if (positions && !by_position) continue;
    const LedgerTable& ledger = TableOfLedger(positions);
    auto facts = catalogue.ReadLedger(ledger);
    if (!facts) return tl::unexpected(facts.error());
    found.ledgers.emplace_back(&ledger, std::move(*facts));
  }
  return found;
}

namespace {

// Who only looks makes nothing. Where there is no ledger, nothing is in it.
OutputError WillBeMade(const TablePlan& plan, const FoundTables& found, const TableTerms& terms) {
  std::vector<std::string> made;
  for (const TablePlan::Step& step : plan.steps) {
    const std::string_view sql(step.sql.data(), std::min(step.sql.find('('), step.sql.size()));
    made.emplace_back(sql.substr(0, sql.find_last_not_of(' ') + 1));
  }
  bool ledger = true;
  std::size_t last = made.size();  // those of ledgers stand behind the others
  for (const auto& [table, facts] : std::views::reverse(found.ledgers)) {
    if (facts) continue;
    ledger = false;
    made[--last] = fmt::format("the ledger {}", table->name);
  }
  OutputError error = SchemaError(terms.where,
                                  fmt::format("{}.create: a worker makes at its start: {}",
                                              terms.output, fmt::join(made, ", ")),
                                  "see fencepost tables plan");
  error.error.code = ledger ? kTablesMissing : kLedgerMissing;
  for (const std::string& difference : plan.differences) {
    error.error.what += "; differs: " + difference;
  }
  return error;
}

// What a worker refuses of what is there already: it would make the rest in vain.
TableStore::Answer<void> WhatIsThereServes(Catalogue& catalogue, EffectShapes effects,
                                           const std::vector<WantedTable>& wanted,
                                           const FoundTables& found, Dialect dialect,
                                           const LedgerTerms& asked, const TableTerms& terms) {
  std::set<std::string> made;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const FoundTables alone{
        .tables = {found.tables[i]}, .ledgers = {}, .types = found.types, .missing_schemas = {}};
    const auto plan = PlanTables({wanted[i]}, alone, dialect, terms, asked.exactly_once);
    if (!plan.steps.empty()) made.insert(wanted[i].name);
  }
  for (EffectShape& effect : effects) {
    std::erase_if(effect.tables, [&](const std::string& table) { return made.contains(table); });
  }
  std::erase_if(effects, [](const EffectShape& effect) {
    return effect.shape.statement || effect.tables.empty();
  });
  auto fine = LearnTables(catalogue, effects, asked, terms);
  if (fine || fine.error().error.code != kLedgerMissing) return fine;
  fine = {};
  for (const auto& [ledger, facts] : found.ledgers) {
    if (facts && fine) fine = CheckLedger(*facts, *ledger, terms);
  }
  return fine;
}

}  // namespace

TableStore::Answer<void> CreateTables(Catalogue& catalogue, const EffectShapes& effects,
                                      Dialect dialect, const LedgerTerms& asked,
                                      const TableTerms& terms) {
  if (asked.missing == MissingLedger::kGone) return {};
  const std::vector<WantedTable> wanted = WantedTables(effects, terms.output);
  for (bool again = false;; again = true) {
    const auto found = FindTables(catalogue, wanted, asked.by_position, dialect);
    if (!found) return tl::unexpected(found.error());
    const TablePlan plan = PlanTables(wanted, *found, dialect, terms, asked.exactly_once);
    if (plan.steps.empty()) return {};
    if (asked.missing == MissingLedger::kTell) {
      if (auto serves =
              WhatIsThereServes(catalogue, effects, wanted, *found, dialect, asked, terms);
          !serves) {
        return serves;
      }
      return tl::unexpected(WillBeMade(plan, *found, terms));
    }
    std::vector<std::string> statements;
    for (const TablePlan::Step& step : plan.steps) statements.push_back(step.sql);
    auto made = catalogue.Run(statements);
    // Another worker may have made them in between.
    if (made || again) return made;
  }
}

}  // namespace fencepost::consumer
