#include "consumer/testing/expectations.h"

#include <algorithm>

#include <fmt/format.h>

#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

struct Wanted {
  TestRow row;
  std::vector<std::string> numbers;  // ExpectedRow
  int line = 0;
};

std::string CellText(const std::optional<std::string>& cell) { return cell.value_or("null"); }

const std::optional<std::string>* CellOf(const TestRow& row, const std::string& name) {
  const auto found = std::ranges::find(row, name, &TestRow::value_type::first);
  return found == row.end() ? nullptr : &found->second;
}

// The cell is there, and is what is expected. A header is null, or none.
bool Holds(const TestRow& row, const TestRow::value_type& cell, const Wanted& expected) {
  const auto* found = CellOf(row, cell.first);
  if (found == nullptr) return !cell.second && cell.first.starts_with(kHeaderCell);
  if (*found == cell.second) return true;
  return *found && cell.second && std::ranges::count(expected.numbers, cell.first) > 0 &&
         AreSameNumber(**found, *cell.second);
}

// The cells that are expected and not there; others do not matter.
TestRow Differences(const TestRow& row, const Wanted& expected) {
  TestRow differ = expected.row;
  std::erase_if(differ, [&](const auto& cell) { return Holds(row, cell, expected); });
  return differ;
}

std::string RowText(const TestRow& row) {
  std::string text;
  for (const auto& [name, cell] : row) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, CellText(cell));
  }
  return "{" + text + "}";
}

// "  (amount is 7, not 8)"
std::string DifferencesText(const TestRow& row, const Wanted& expected) {
  std::string text;
  for (const auto& [name, cell] : Differences(row, expected)) {
    const auto* found = CellOf(row, name);
    const std::string is = found == nullptr ? "missing" : CellText(*found);
    text += fmt::format("{}{} is {}, not {}", text.empty() ? "" : "; ", name, is, CellText(cell));
  }
  return text.empty() ? "" : "  (" + text + ")";
}

// Of the one that is most like what was expected, if it is like it at all, with where it differs.
std::string RowsText(const std::vector<TestRow>& rows, const Wanted& expected = {}) {
  const auto differences = [&](const TestRow& row) { return Differences(row, expected).size(); };
  const auto nearest = std::ranges::min_element(rows, {}, differences);
  std::string text;
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    const bool alike = rows.size() == 1 || differences(*row) < expected.row.size();
    text += "\n  " + RowText(*row);
    if (row == nearest && alike) text += DifferencesText(*row, expected);
  }
  return rows.empty() ? " none" : text;
}

TestRow FieldsOf(const TestDeadLetter& dead) {
  static constexpr const char* kReasons[] = {"bad_record", "id_conflict", "handler", "output",
                                             "timeout"};
  const DeadLetter& letter = dead.letter;
  return {{"record_id", letter.record_id},
          {"reason", kReasons[static_cast<std::size_t>(letter.reason)]},
          {"error_class", letter.error_class},
          {"error", letter.error},
          {"attempts", std::to_string(letter.attempts)},
          {"topic", letter.where.topic},
          {"partition", std::to_string(letter.where.partition)},
          {"offset", std::to_string(letter.record.offset)},
          {"key", dead.key},
          {"value", dead.value}};
}

// Which row each expected one takes, no row twice, wherever that is possible for all
// (augmenting paths: an expected row that finds its rows taken asks their takers to move).
class Matching {
 public:
  Matching(const std::vector<Wanted>& expected, const std::vector<TestRow>& rows)
      : expected_(expected), rows_(rows), taker_(rows.size()) {}

  // False: this one cannot be satisfied together with those that were placed before.
  bool Place(std::size_t wanted) {
    asked_.assign(rows_.size(), false);
    return Take(wanted);
  }
  [[nodiscard]] std::vector<TestRow> Left() const {
    std::vector<TestRow> left;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!taker_[row]) left.push_back(rows_[row]);
    }
    return left;
  }

 private:
  bool Take(std::size_t wanted) {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (asked_[row] || !Differences(rows_[row], expected_[wanted]).empty()) continue;
      asked_[row] = true;
      if (taker_[row] && !Take(*taker_[row])) continue;
      taker_[row] = wanted;
      return true;
    }
    return false;
  }

  const std::vector<Wanted>& expected_;
  const std::vector<TestRow>& rows_;
  std::vector<std::optional<std::size_t>> taker_;  // by row
  std::vector<bool> asked_;
};

std::string Counted(int count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Each expected one takes one that came; what is left over was not expected.
void CompareRows(const char* what, const std::vector<Wanted>& expected,
                 const std::vector<TestRow>& rows, bool in_order, int line,
                 std::vector<TestFailure>& failures) {
  Matching matching(expected, rows);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool found =
        in_order ? i < rows.size() && Differences(rows[i], expected[i]).empty() : matching.Place(i);
    if (found) continue;
    failures.push_back(
        {expected[i].line,
         fmt::format("expected {} {}{}; there are:{}", what, RowText(expected[i].row),
                     in_order ? " as the next" : "", RowsText(rows, expected[i]))});
    return;
  }
  if (rows.size() <= expected.size()) return;
  const auto more = static_cast<std::ptrdiff_t>(expected.size());
  const std::vector<TestRow> left =
      in_order ? std::vector<TestRow>(rows.begin() + more, rows.end()) : matching.Left();
  failures.push_back(
      {line, fmt::format("{} than expected:{}",
                         Counted(static_cast<int>(left.size()), fmt::format("more {}", what)),
                         RowsText(left))});
}

void CompareCount(const char* what, std::optional<int> expected, int count, int line,
                  std::vector<TestFailure>& failures) {
  if (!expected || *expected == count) return;
  failures.push_back({line, fmt::format("expected {}, there {} {}", Counted(*expected, what),
                                        count == 1 ? "was" : "were", count)});
}

}  // namespace

std::vector<TestFailure> Compare(const PipelineTest& test, TestWorld& world) {
  std::vector<TestFailure> failures;
  if (test.rows) {
    std::vector<Wanted> wanted;
    for (const ExpectedRow& row : *test.rows) wanted.push_back({row.cells, row.numbers, row.line});
    CompareRows("row", wanted, world.output->Rows(), test.rows_in_order, test.line, failures);
  }
  if (test.dead_letters) {
    std::vector<Wanted> wanted;
    for (const ExpectedDeadLetter& letter : *test.dead_letters) {
      Wanted& one = wanted.emplace_back(Wanted{.row = {}, .numbers = {}, .line = letter.line});
      for (const auto& [name, value] : letter.fields) one.row.emplace_back(name, value);
    }
    std::vector<TestRow> rows;
    for (const TestDeadLetter& dead : world.dead_letters) rows.push_back(FieldsOf(dead));
    CompareRows("dead letter", wanted, rows, false, test.line, failures);
  }
  CompareCount("skip", test.skips, world.skips, test.line, failures);
  CompareCount("filtered record", test.filtered, static_cast<int>(world.filtered.size()), test.line,
               failures);
  CompareCount("handler call", test.handler_calls, world.handler_calls, test.line, failures);
  for (const std::string& id : world.handler->unanswered()) {
    failures.push_back({test.line, fmt::format("no stub under http: answers a call for {}", id)});
  }
  for (const std::string& fault : world.NotStruck()) {
    failures.push_back({test.line, fault + ": there was no occasion for it in this test"});
  }
  for (const std::string& broken : world.broken) {
    failures.push_back({test.line, "a broken invariant was counted: " + broken});
  }
  return failures;
}

}  // namespace fencepost::consumer
