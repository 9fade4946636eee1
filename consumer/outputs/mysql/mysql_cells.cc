// What the types of MySQL and MariaDB take.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "consumer/outputs/mysql/mysql_schema.h"

namespace fencepost::consumer {
namespace {

CellKind KindOf(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, CellKind>, 32> kKinds{
      {{"tinyint", CellKind::kWhole},     {"smallint", CellKind::kWhole},
       {"mediumint", CellKind::kWhole},   {"int", CellKind::kWhole},
       {"bigint", CellKind::kWhole},      {"bit", CellKind::kWhole},
       {"year", CellKind::kWhole},        {"decimal", CellKind::kDecimal},
       {"float", CellKind::kFloat},       {"double", CellKind::kFloat},
       {"char", CellKind::kText},         {"varchar", CellKind::kText},
       {"tinytext", CellKind::kText},     {"text", CellKind::kText},
       {"mediumtext", CellKind::kText},   {"longtext", CellKind::kText},
       {"enum", CellKind::kChoice},       {"set", CellKind::kChoice},
       {"json", CellKind::kJson},         {"binary", CellKind::kBytes},
       {"varbinary", CellKind::kBytes},   {"tinyblob", CellKind::kBytes},
       {"blob", CellKind::kBytes},        {"mediumblob", CellKind::kBytes},
       {"longblob", CellKind::kBytes},    {"date", CellKind::kDate},
       {"time", CellKind::kTime},         {"datetime", CellKind::kDateTime},
       {"timestamp", CellKind::kDateTime}}};
  const auto* const found =
      std::ranges::find(kKinds, type, &std::pair<std::string_view, CellKind>::first);
  return found == kKinds.end() ? CellKind::kOther : found->second;
}

// Whole numbers of so many bits.
void SetBits(CellType& cell, int bits, bool is_unsigned) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  cell.booleans = true;
  cell.most = kAll >> (64 - bits + (is_unsigned ? 0 : 1));
  cell.least = is_unsigned ? 0 : -static_cast<std::int64_t>(cell.most) - 1;
}

void SetWhole(CellType& cell, const MysqlTypeFacts& facts) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kBits{
      {{"tinyint", 8}, {"smallint", 16}, {"mediumint", 24}, {"int", 32}, {"bigint", 64}}};
  for (const auto& [type, bits] : kBits) {
    if (type == facts.data_type) {
      SetBits(cell, bits, facts.declared.find("unsigned") != std::string::npos);
    }
  }
  if (facts.data_type == "bit") {
    const int bits = std::clamp(facts.precision.value_or(1), 1, 64);
    SetBits(cell, bits, true);
    cell.bits = static_cast<std::size_t>(bits);
  }
  if (facts.data_type != "year") return;
  cell.least = 1901;  // two digits would become another year
  cell.most = 2155;
}

// Of enum('a','it''s').
std::vector<std::string> ChoicesOf(std::string_view declared) {
  std::vector<std::string> choices;
  for (auto at = declared.find('\''); at < declared.size(); at = declared.find('\'', at)) {
    std::string& choice = choices.emplace_back();
    for (++at; at < declared.size(); ++at) {
      if (declared[at] == '\'' && !declared.substr(at + 1).starts_with('\'')) break;
      if (declared[at] == '\'') ++at;
      choice.push_back(declared[at]);
    }
    ++at;
  }
  return choices;
}

}  // namespace

CellType MysqlCellType(const MysqlTypeFacts& facts) {
  CellType cell{.kind = KindOf(facts.data_type), .reads_json = false};
  if (cell.kind != CellKind::kJson) cell.no_nul = "; a binary column takes any bytes";
  switch (cell.kind) {
    case CellKind::kWhole:
      SetWhole(cell, facts);
      break;
    case CellKind::kDecimal:
    case CellKind::kFloat:
      cell.digits = facts.scale;
      cell.single = facts.data_type == "float";
      break;
    case CellKind::kText:
      // Of a text the limit is of bytes, where it is known what they are.
      if (facts.data_type.ends_with("text") && facts.octets > 0) {
        cell.octets = facts.octets;
      } else {
        cell.characters = facts.characters;
      }
      cell.padded = facts.data_type == "char";
      break;
    case CellKind::kBytes:
      cell.octets = facts.octets;
      cell.padded = facts.data_type == "binary";
      break;
    case CellKind::kChoice:
      cell.choices = ChoicesOf(facts.declared);
      cell.several = facts.data_type == "set";
      break;
    case CellKind::kTime:
    case CellKind::kDateTime:
      cell.digits = facts.digits;
      cell.spans = cell.kind == CellKind::kTime;
      break;
    default:
      break;
  }
  return cell;
}

}  // namespace fencepost::consumer
