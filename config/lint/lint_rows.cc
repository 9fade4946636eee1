// What a row does to one that is in the table: on_conflict, key, the fence, tombstones.
#include <set>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"

namespace fencepost::config {
namespace {

using consumer::Selector;

// Of an output with one effect, or of one of its effects: `values` of the section at `output`.
class Rows {
 public:
  Rows(const Values& pipeline, const Values& values, std::string_view output, Findings& findings)
      : pipeline_(pipeline), values_(values), output_(output), findings_(findings) {}

  void Lint() {
    updates_ = Word("on_conflict") == "update";
    deletes_ = Word("on_null_value") == "delete";
    LintKey();
    LintFence();
    LintTombstones();
  }

 private:
  [[nodiscard]] std::string Path(std::string_view name) const {
    return fmt::format("{}.{}", output_, name);
  }
  [[nodiscard]] std::string Word(std::string_view name) const {
    return values_.Wrong(Path(name)) ? "" : values_.String(Path(name));
  }
  [[nodiscard]] bool Given(std::string_view name) const { return values_.Given(Path(name)); }
  template <typename... Values>
  void Error(std::string_view name, fmt::format_string<Values...> what, Values&&... values) {
    findings_.Error(values_.ValuePlace(Path(name)), "rows", "{}: {}", Path(name),
                    fmt::format(what, std::forward<Values>(values)...));
  }

  [[nodiscard]] const Text* Column(std::string_view name) const {
    for (const Text& column : values_.Texts(Path("columns"))) {
      if (column.name == name) return &column;
    }
    return nullptr;
  }

  void LintKey() {
    if (!Given("key")) {
      const std::string_view why = "needs key: the columns that name a row, as in key: [order_id]";
      if (updates_) Error("on_conflict", "update {}", why);
      if (deletes_) Error("on_null_value", "delete {}", why);
      return;
    }
    const Entry* key = values_.Find(Path("key"));
    if (key == nullptr) return;
    if (Word("on_conflict") == "error" && !deletes_) {
      findings_.Warning(values_.KeyPlace(Path("key")), "rows",
                        "{} has no effect without on_conflict: update or on_null_value: delete",
                        Path("key"));
    }
    std::set<std::string> seen;
    for (const Text& name : key->texts) {
      if (!seen.insert(name.value).second) {
        findings_.Error(name.at, "rows", "{}: {} is given twice", Path("key"), name.shown);
      } else if (Column(name.value) == nullptr && values_.Find(Path("columns")) != nullptr) {
        findings_.Error(name.at, "rows", "{}: {} is none of columns", Path("key"), name.shown);
      } else if (const Text* column = Column(name.value);
                 column != nullptr && column->selector.omits) {
        findings_.Error(column->at, "rows",
                        "{}.{}: a column of key names the row: leave the ?default out",
                        Path("columns"), name.value);
      }
    }
  }

  void LintFence() {
    if (Given("fence_column") && !Given("fence_by")) {
      Error("fence_column", "needs fence_by: what is compared, as in fence_by: json:/version");
    }
    if (Given("fence_by") && !Given("fence_column")) {
      Error("fence_by", "needs fence_column: the column that it is compared with");
    }
    if (Given("fence_column") && !updates_ && !values_.Wrong(Path("on_conflict"))) {
      Error("fence_column", "nothing is overwritten without on_conflict: update");
    }
    const Selector* by = values_.FindSelector(Path("fence_by"));
    if (by == nullptr) return;
    if (by->optional && (by->kind != Selector::Kind::kRecordJson || !deletes_)) {
      Error("fence_by", "a null cannot be compared: leave the ? out");
    }
    if (by->kind == Selector::Kind::kOffset || by->kind == Selector::Kind::kPartition) {
      Error("fence_by",
            "{} orders the log of one partition only: once partitions are added or the topic is "
            "made again, newer changes would lose; take a version of the source, as in "
            "json:/source/lsn or json:/ts_us, or leave the fence out: with order: key the ledger "
            "lets the changes of a key take effect once and in their order",
            by->Text());
    }
    const std::string column = values_.String(Path("fence_column"));
    const Text* written = Column(column);
    if (written != nullptr && written->selector != *by) {
      Error("fence_by", "columns writes {} into {}, and the fence compares {}; make them one",
            written->shown, column, Shown(values_, Path("fence_by")));
    }
    const auto keys = values_.Strings(Path("key"));
    if (std::find(keys.begin(), keys.end(), column) != keys.end()) {
      Error("fence_column", "a column of key never changes");
    }
    if (by->kind == Selector::Kind::kToken && !LockIsTheRow()) {
      findings_.Warning(values_.ValuePlace(Path("fence_by")), "rows",
                        "{}: tokens are ordered within one lock only, and here record_id is not "
                        "what key names; take a version of the source, as in json:/version",
                        Path("fence_by"));
    }
  }

  // Whether the lock is taken on what names the row.
  [[nodiscard]] bool LockIsTheRow() const {
    std::set<std::string> key;
    for (const std::string& name : values_.Strings(Path("key"))) {
      const Text* column = Column(name);
      if (column == nullptr) return false;
      key.insert(column->selector.Text());
    }
    std::set<std::string> id;
    for (const Selector& part : pipeline_.Selectors("record_id")) id.insert(part.Text());
    return key == std::set<std::string>{"record_id"} || (!id.empty() && key == id);
  }

  void LintTombstones() {
    const std::string word = Word("on_null_value");
    const auto id = pipeline_.Selectors("record_id");
    if (word != "bad" && word != "" && std::ranges::any_of(id, &Selector::NeedsValue) &&
        !pipeline_.Given("handler")) {
      findings_.Warning(values_.ValuePlace(Path("on_null_value")), "rows",
                        "{}: {} never happens: a tombstone has no {} for record_id, and is bad; "
                        "take position, key or header:NAME",
                        Path("on_null_value"), word, Shown(pipeline_, "record_id"));
    }
    if (!deletes_) return;
    const Selector* by = values_.FindSelector(Path("fence_by"));
    if (by != nullptr && by->NeedsValue()) {
      Error("fence_by",
            "a tombstone has no {}, and on_null_value: delete is fenced too; take "
            "record:/POINTER?, which is lower than any where it is missing, header:NAME or "
            "timestamp",
            Shown(values_, Path("fence_by")));
    }
    for (const std::string& name : values_.Strings(Path("key"))) {
      const Text* column = Column(name);
      if (column == nullptr || !column->selector.NeedsValue()) continue;
      findings_.Error(column->at, "rows",
                      "{}.{}: a tombstone has no {}, and on_null_value: delete needs the columns "
                      "of key; take key or header:NAME",
                      Path("columns"), name, column->shown);
    }
  }

  const Values& pipeline_;
  const Values& values_;
  std::string_view output_;
  Findings& findings_;
  bool updates_ = false;
  bool deletes_ = false;
};

}  // namespace

void LintRows(const Values& pipeline, const Values& values, std::string_view path,
              Findings& findings) {
  Rows(pipeline, values, path, findings).Lint();
}

}  // namespace fencepost::config
