#include "consumer/testing/expectations.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

std::string CellText(const std::optional<std::string>& cell) { return cell.value_or("null"); }

std::string RowText(const TestRow& row) {
  std::string text;
  for (const auto& [name, cell] : row) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, CellText(cell));
  }
  return "{" + text + "}";
}

std::string RowsText(const std::vector<TestRow>& rows) {
  std::string text;
  for (const TestRow& row : rows) text += "\n  " + RowText(row);
  return rows.empty() ? " none" : text;
}

// Every cell that is expected is there; others do not matter. A header is null, or none.
bool Holds(const TestRow& row, const TestRow& expected) {
  return std::ranges::all_of(expected, [&](const auto& cell) {
    const bool none = !cell.second && cell.first.starts_with(kHeaderCell) &&
                      std::ranges::find(row, cell.first, &TestRow::value_type::first) == row.end();
    return none || std::ranges::find(row, cell) != row.end();
  });
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

struct Wanted {
  TestRow row;
  int line = 0;
};

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
      if (asked_[row] || !Holds(rows_[row], expected_[wanted].row)) continue;
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

// Each expected one takes one that came; what is left over was not expected.
void CompareRows(const char* what, const std::vector<Wanted>& expected,
                 const std::vector<TestRow>& rows, bool in_order, int line,
                 std::vector<TestFailure>& failures) {
  Matching matching(expected, rows);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool found =
        in_order ? i < rows.size() && Holds(rows[i], expected[i].row) : matching.Place(i);
    if (found) continue;
    failures.push_back(
        {expected[i].line,
         fmt::format("expected {} {}{}; there are:{}", what, RowText(expected[i].row),
                     in_order ? " as the next" : "", RowsText(rows))});
    return;
  }
  if (rows.size() <= expected.size()) return;
  const auto more = static_cast<std::ptrdiff_t>(expected.size());
  const std::vector<TestRow> left =
      in_order ? std::vector<TestRow>(rows.begin() + more, rows.end()) : matching.Left();
  failures.push_back(
      {line, fmt::format("{} more {}(s) than expected:{}", left.size(), what, RowsText(left))});
}

void CompareCount(const char* what, std::optional<int> expected, int count, int line,
                  std::vector<TestFailure>& failures) {
  if (!expected || *expected == count) return;
  failures.push_back({line, fmt::format("expected {} {}, there were {}", *expected, what, count)});
}

}  // namespace

std::vector<TestFailure> Compare(const PipelineTest& test, TestWorld& world) {
  std::vector<TestFailure> failures;
  if (test.rows) {
    std::vector<Wanted> wanted;
    for (const ExpectedRow& row : *test.rows) wanted.push_back({row.cells, row.line});
    CompareRows("row", wanted, world.output->Rows(), test.rows_in_order, test.line, failures);
  }
  if (test.dead_letters) {
    std::vector<Wanted> wanted;
    for (const ExpectedDeadLetter& letter : *test.dead_letters) {
      Wanted& one = wanted.emplace_back(Wanted{{}, letter.line});
      for (const auto& [name, value] : letter.fields) one.row.emplace_back(name, value);
    }
    std::vector<TestRow> rows;
    for (const TestDeadLetter& dead : world.dead_letters) rows.push_back(FieldsOf(dead));
    CompareRows("dead letter", wanted, rows, false, test.line, failures);
  }
  CompareCount("skips", test.skips, world.skips, test.line, failures);
  CompareCount("handler calls", test.handler_calls, world.handler_calls, test.line, failures);
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
