// What becomes of a record in a database: one table or statement, or a list of effects.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/schema/checks.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/tables/column_types.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/record_filter.h"
#include "consumer/record/text.h"

namespace fencepost::config {
namespace {

using consumer::Selector;

constexpr std::string_view kRowKeys[] = {"table",        "columns",  "on_conflict", "key",
                                         "fence_column", "fence_by", "convert",     "on_null_value",
                                         "keep",         "types"};

// One section that says it: output.NAME, or an element of output.NAME.effects.
class EffectLint {
 public:
  EffectLint(const Values& pipeline, const Values& values, std::string path, Findings& findings)
      : pipeline_(pipeline), values_(values), path_(std::move(path)), findings_(findings) {}

  void Lint() {
    if (Given("statement")) {
      LintStatement();
    } else {
      LintTableAndColumns();
      LintRows(pipeline_, values_, path_, findings_);
    }
    LintConvert();
    LintTypes();
    LintTables();
    if (!path_.ends_with(".effects")) return;
    LintOtherwise(values_, Path("table"), findings_);
    LintWhen(values_, Path("when"), findings_);
    LintDeletes();
    LintEach();
  }

 private:
  [[nodiscard]] std::string Path(std::string_view name) const {
    return fmt::format("{}.{}", path_, name);
  }
  [[nodiscard]] bool Given(std::string_view name) const { return values_.Given(Path(name)); }
  [[nodiscard]] bool OfPostgres() const { return path_.starts_with("output.postgres"); }
  [[nodiscard]] bool OfMysql() const { return path_.starts_with("output.mysql"); }

  void LintStatement() {
    for (const std::string_view name : kRowKeys) {
      if (!Given(name)) continue;
      findings_.Error(values_.KeyPlace(Path(name)), "statement",
                      "{}: {} says all of it: leave one of the two out", Path(name),
                      Path("statement"));
    }
  }

  void LintTableAndColumns() {
    const bool effects = !path_.ends_with(".effects");
    const std::string instead = fmt::format("{}{}", OfPostgres() ? "statement and args" : "",
                                            !effects       ? ""
                                            : OfPostgres() ? ", or effects"
                                                           : "effects");
    for (const std::string_view name : {"table", "columns"}) {
      if (Given(name)) continue;
      findings_.Error(values_.KeyPlace(path_), "missing", "{} is missing{}", Path(name),
                      instead.empty() ? "" : fmt::format(" (or give {})", instead));
    }
    if (!Given("args")) return;
    findings_.Error(values_.KeyPlace(Path("args")), "statement",
                    "{} are those of a statement, and there is none", Path("args"));
  }

  void LintConvert() {
    const std::string path = Path("convert");
    const auto columns = values_.Texts(Path("columns"));
    for (const Text& text : values_.Texts(path)) {
      if (std::ranges::find(columns, text.name, &Text::name) == columns.end()) {
        findings_.Error(text.name_at, "convert", "{}: {} is not among {}.columns", path, text.name,
                        path_);
      } else if (consumer::ParseConversion(text.value)) {
        continue;
      } else if (text.value.starts_with(consumer::kScaledDecimal)) {
        findings_.Error(text.at, "convert",
                        "{}: \"{}\": the scale of a decimal is a whole number from 0 to {}", path,
                        text.value, consumer::kMostScale);
      } else {
        findings_.Error(
            text.at, "convert",
            "{}: \"{}\" is none of d, s, ms, us, ns (of a number that counts since 1970), "
            "base64, hex, json, decimal:SCALE (of a text), bool (of 0 and 1), int32, int64 "
            "(of bytes)",
            path, text.value);
      }
    }
  }

  void LintTypes() {
    const std::string path = Path("types");
    const auto columns = values_.Texts(Path("columns"));
    const std::string fence = values_.String(Path("fence_column"));
    const auto dialect = OfPostgres() ? consumer::Dialect::kPostgres
                         : OfMysql()  ? consumer::Dialect::kMysql
                                      : consumer::Dialect::kSqlite;
    for (const Text& text : values_.Texts(path)) {
      if (text.name != fence &&
          std::ranges::find(columns, text.name, &Text::name) == columns.end()) {
        findings_.Error(text.name_at, "types", "{}: {} is not among {}.columns", path, text.name,
                        path_);
      } else if (const std::string problem = consumer::ProblemOfType(text.value, dialect);
                 !problem.empty()) {
        findings_.Error(text.at, "types", "{}: {} {}", path, text.shown, problem);
      }
    }
  }

  // Every table that may be named: by the section, or by what chooses one.
  void LintTables() {
    for (const auto& [path, text] : ChoicesOf(values_, Path("table"))) LintTable(path, *text);
  }

  void LintTable(const std::string& path, const Text& text) {
    const auto check = OfPostgres() ? CheckPostgresTable
                       : OfMysql()  ? CheckMysqlTable
                                    : CheckSqliteTable;
    if (const std::string problem = check(text.value); !problem.empty()) {
      findings_.Error(text.at, "value", "{}: {} {}", path, text.shown, problem);
      return;
    }
    const auto table = consumer::SplitTableName(text.value);
    const std::string name = table ? consumer::Lower(table->back()) : "";
    if (name != consumer::kLedgerTable && name != consumer::kPositionsTable) return;
    findings_.Error(text.at, "table", "{}: this is the ledger's own table", path);
  }

  // A tombstone has no value by which it could be chosen.
  void LintDeletes() {
    if (values_.Wrong(Path("on_null_value")) || values_.String(Path("on_null_value")) != "delete") {
      return;
    }
    const auto tell = [&](const Text& text, const std::string& path, const Selector& selector) {
      if (!selector.NeedsValue()) return;
      findings_.Error(text.at, "effects",
                      "{}: a tombstone has no {}, so nothing is deleted; take key, key:/POINTER or "
                      "header:NAME",
                      path, selector.Text());
    };
    if (const Entry* by = values_.Find(Path("table.by"))) {
      tell(by->texts.front(), Path("table.by"), by->texts.front().selector);
    }
    const Entry* const when = values_.Find(Path("when"));
    if (when == nullptr) return;
    for (const Text& text : when->texts) {
      const auto condition = consumer::ParseCondition(text.value);
      if (when->is_list && condition) tell(text, Path("when"), condition->selector);
    }
    if (when->is_list) return;
    findings_.Warning(values_.ValuePlace(Path("when")), "effects",
                      "{}: the value of a tombstone is null there: where the program is false for "
                      "null, nothing is deleted",
                      Path("when"));
  }

  void LintEach() {
    const Selector* each = values_.FindSelector(Path("each"));
    if (each != nullptr && !each->ReadsJson()) {
      findings_.Error(values_.ValuePlace(Path("each")), "effects",
                      "{}: {} is no part of JSON: take json:/POINTER, record:/POINTER or "
                      "key:/POINTER",
                      Path("each"), each->Text());
    }
    if (Given("each") && values_.String(Path("on_null_value")) == "delete") {
      findings_.Error(values_.ValuePlace(Path("on_null_value")), "effects",
                      "{}: delete with each: a tombstone has no elements; let the database delete "
                      "the rows with the one that they belong to (ON DELETE CASCADE)",
                      Path("on_null_value"));
    }
    if (Given("each")) return;
    for (const auto& [path, text] : OutputSelectors(values_)) {
      if (!text->selector.OfElement()) continue;
      findings_.Error(text->at, "effects",
                      "{}{}{}: {} is of the element of an array, and the effect has no each", path,
                      text->name.empty() ? "" : ".", text->name, text->selector.Text());
    }
  }

  const Values& pipeline_;
  const Values& values_;
  const std::string path_;
  Findings& findings_;
};

void LintOutputOf(const Values& values, const std::string& output, Findings& findings) {
  if (!values.Given(output)) return;
  const std::string effects = output + ".effects";
  if (!values.Given(effects)) return EffectLint(values, values, output, findings).Lint();
  for (const Values& effect : values.Sections(effects)) {
    EffectLint(values, effect, effects, findings).Lint();
  }
  const auto not_beside = [&](std::string_view name) {
    const std::string path = fmt::format("{}.{}", output, name);
    if (!values.Given(path)) return;
    findings.Error(values.KeyPlace(path), "effects",
                   "{}: {} says all of it: put it into one of them", path, effects);
  };
  for (const std::string_view name : kRowKeys) not_beside(name);
  if (output == "output.postgres") {
    for (const std::string_view name : {"statement", "args"}) not_beside(name);
  }
}

}  // namespace

void LintEffects(const Values& values, Findings& findings) {
  for (const char* output : {"output.postgres", "output.mysql", "output.sqlite"}) {
    LintOutputOf(values, output, findings);
  }
  if (values.Given("output.postgres") && !values.Given(kDsn) &&
      !values.Given("output.postgres.host")) {
    findings.Error(values.KeyPlace("output.postgres"), "missing",
                   "{} is missing (or give host, user, password and database)", kDsn);
  }
}

}  // namespace fencepost::config
