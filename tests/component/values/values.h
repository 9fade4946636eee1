// One table of values: what a record's value becomes in a column of each type in each database. A
// row is one value; its cells are columns, each with the text that is in it afterwards, or with why
// the record (or the file, or the table) is refused.
//
// Every cell takes the way of a pipeline: its file is loaded, its output opened and written to. The
// servers' own settings are as odd as they can be (values_test.cc), for none may have a say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fencepost::consumer {

struct ValueRow {
  std::string name;   // in words: "an offset is the same moment everywhere"
  std::string v;      // JSON: the record is {"v": …}
  std::string given;  // what convert says of the column; "" for nothing
  // "DATABASE TYPE", or "DATABASE DATABASE TYPE" of several (postgres, mysql, sqlite), and what is
  // expected: the cell's text (SQLite: as an SQL literal, so that its type shows; bytes in MySQL in
  // hex), NULL, or "! " and a part of the refusal.
  std::vector<std::pair<std::string, std::string>> cells;
  std::string from = "json:/v";  // the column's selector
  std::string value{};           // the whole value, instead of {"v": …}
  std::string key = "k";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string also{};  // further lines of the output's section, such as "keep: [x]\n"
};

void PrintTo(const ValueRow& row, std::ostream* out);

class Values : public ::testing::TestWithParam<ValueRow> {};

// "an offset is …" as AnOffsetIs….
std::string ValueName(const ::testing::TestParamInfo<ValueRow>& row);

// A group of rows: VALUES(Times, {{"…", …}, {…}}).
#define VALUES(group, ...)                                                                        \
  INSTANTIATE_TEST_SUITE_P(group, Values, ::testing::ValuesIn(std::vector<ValueRow> __VA_ARGS__), \
                           ValueName)

}  // namespace fencepost::consumer
