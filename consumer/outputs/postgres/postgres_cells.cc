#include "consumer/outputs/postgres/postgres_schema.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace fencepost::consumer {
namespace {

constexpr std::string_view kNoNul = ", which PostgreSQL has no text for";

// By the oids of pg_type.dat, which are the same in each PostgreSQL.
CellKind KindOf(Oid type) {
  constexpr std::array<std::pair<Oid, CellKind>, 31> kKinds{
      {{16, CellKind::kBoolean},    {17, CellKind::kBytes},      {18, CellKind::kText},
       {19, CellKind::kText},       {20, CellKind::kWhole},      {21, CellKind::kWhole},
       {23, CellKind::kWhole},      {25, CellKind::kText},       {26, CellKind::kWhole},
       {114, CellKind::kJson},      {700, CellKind::kFloat},     {701, CellKind::kFloat},
       {790, CellKind::kDecimal},   {1042, CellKind::kText},     {1043, CellKind::kText},
       {1082, CellKind::kDate},     {1083, CellKind::kTime},     {1114, CellKind::kDateTime},
       {1184, CellKind::kDateTime}, {1186, CellKind::kInterval}, {1266, CellKind::kTime},
       {1560, CellKind::kBits},     {1562, CellKind::kBits},     {1700, CellKind::kDecimal},
       {3802, CellKind::kJson},     {3908, CellKind::kRange},    {3910, CellKind::kRange},
       {3912, CellKind::kRange},    {4533, CellKind::kRange},    {4534, CellKind::kRange},
       {4535, CellKind::kRange}}};
  const auto* const found = std::ranges::find(kKinds, type, &std::pair<Oid, CellKind>::first);
  return found == kKinds.end() ? CellKind::kOther : found->second;
}

template <typename Int>
void SetRange(CellType& cell) {
  cell.least = std::numeric_limits<Int>::min();
  cell.most = static_cast<std::uint64_t>(std::numeric_limits<Int>::max());
}

// As INTERVAL_TYPMOD has them: the fields of `interval hour to minute`, the digits of interval(3).
void SetInterval(CellType& cell, int modifier) {
  constexpr int kAnyPrecision = 0xffff;
  constexpr std::array<std::pair<int, IntervalField>, 6> kBits{{{12, IntervalField::kSeconds},
                                                                {11, IntervalField::kMinutes},
                                                                {10, IntervalField::kHours},
                                                                {3, IntervalField::kDays},
                                                                {1, IntervalField::kMonths},
                                                                {2, IntervalField::kYears}}};
  cell.digits = 6;
  if (modifier < 0) return;
  if (const int precision = modifier & kAnyPrecision; precision != kAnyPrecision) {
    cell.digits = precision;
  }
  const auto* const field = std::ranges::find_if(
      kBits, [&](const auto& bit) { return (modifier >> 16 >> bit.first & 1) != 0; });
  if (field != kBits.end()) cell.finest = field->second;
}

// Its elements need no look of our own, so that an array's text is for PostgreSQL to read.
bool ReadsText(const CellType& element) {
  return element.kind == CellKind::kOther || element.kind == CellKind::kWhole ||
         element.kind == CellKind::kText || element.kind == CellKind::kBoolean;
}

}  // namespace

CellType PgCellType(Oid base, int modifier, char category) {
  CellType cell{.kind = KindOf(base), .no_nul = kNoNul};
  constexpr Oid kFirstOfUsers = 16'384;  // PostGIS and others read JSON
  cell.reads_json = base >= kFirstOfUsers;
  const auto length = static_cast<std::size_t>(std::max(modifier - 4, 0));
  if (cell.kind == CellKind::kOther && category == 'S') cell.kind = CellKind::kText;
  switch (base) {
    case 18:  // "char"
      cell.octets = 1;
      break;
    case 19:  // name
      cell.octets = 63;
      break;
    case 20:
      SetRange<std::int64_t>(cell);
      break;
    case 21:
      SetRange<std::int16_t>(cell);
      break;
    case 23:
      SetRange<std::int32_t>(cell);
      break;
    case 26:
      SetRange<std::uint32_t>(cell);
      break;
    case 114:  // json keeps the escape
      cell.no_nul = {};
      break;
    case 790:  // money
      cell.digits = 2;
      break;
    case 1042:
    case 1043:
      cell.characters = length;
      cell.padded = cell.filled = base == 1042;
      break;
    case 1560:  // bit
      cell.bits = static_cast<std::size_t>(std::max(modifier, 0));
      break;
    case 1562:  // varbit
      cell.characters = static_cast<std::size_t>(std::max(modifier, 0));
      break;
    case 1186:
      SetInterval(cell, modifier);
      break;
    case 1700:
      cell.infinite = true;  // the scale has eleven bits, with a sign
      if (modifier >= 4) cell.digits = (((modifier - 4) & 0x7ff) ^ 0x400) - 0x400;
      break;
    default:
      break;
  }
  if (cell.kind == CellKind::kFloat) {
    cell.single = base == 700;
    cell.infinite = true;
  }
  if (cell.kind == CellKind::kTime || cell.kind == CellKind::kDateTime) {
    cell.digits = modifier < 0 ? 6 : modifier;
    cell.zoned = base == 1184 || base == 1266;
  }
  if (cell.kind == CellKind::kRange) {
    cell.bounds = base == 3912 || base == 4535 ? CellKind::kDate : CellKind::kDateTime;
    cell.zoned = base == 3910 || base == 4534;
  }
  return cell;
}

tl::expected<void, std::string> PgCells::Convert(std::size_t column, std::optional<JsonType> type,
                                                 std::string& text, std::size_t at) {
  const PgColumn& to = (*columns_)[column];
  const Column& from = shape_->columns[column];
  if (to.element && type == JsonType::kArray) {
    return MakeCellArray(*to.element, from, ArrayForm::kPostgres, text, at);
  }
  if (to.element && (from.conversion != Conversion::kNone || !ReadsText(*to.element))) {
    return tl::unexpected<std::string>("is no JSON array");
  }
  return MakeCell(to.cell, from, type, text, at);
}

}  // namespace fencepost::consumer
