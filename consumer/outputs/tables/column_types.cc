#include "consumer/outputs/tables/column_types.h"
#include "consumer/record/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

constexpr std::string_view kBlanks = " ";

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Reads a type from its beginning to its end.
class TypeReader {
 public:
  TypeReader(std::string_view text, Dialect dialect) : text_(text), dialect_(dialect) {}

  std::string Problem() {
    if (text_.find_first_not_of(kBlanks) == std::string_view::npos) return "is empty";
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || (c == '`' && dialect_ == Dialect::kMysql)) {  // elsewhere an operator
        if (!Quoted(c)) return "has a quote that stays open";
      } else if (IsWordChar(c)) {
        if (std::string problem = Word(); !problem.empty()) return problem;
      } else if (c == '(') {
        if (std::string problem = Arguments(); !problem.empty()) return problem;
      } else if (c == '[') {
        if (!Brackets()) return "is no type: in [] is at most a number";
      } else if (c == ' ' || c == '.') {
        ++at_;
      } else {
        return fmt::format("is no type: {} is not part of one",
                           c > ' ' && c < 0x7f ? std::string(1, c) : "a control character");
      }
    }
    return "";
  }

 private:
  // A doubled quote is one.
  bool Quoted(char quote) {
    for (++at_; at_ < text_.size(); ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c < ' ' || c == '\\') return false;
      if (text_[at_] != quote) continue;
      ++at_;
      if (at_ == text_.size() || text_[at_] != quote) return true;
    }
    return false;
  }

  // [] and [3]: what else SQLite takes as a quoted name.
  bool Brackets() {
    for (++at_; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;) {
      ++at_;
    }
    return at_ < text_.size() && text_[at_++] == ']';
  }

  std::string Word() {
    constexpr std::array<std::string_view, 16> kConstraints{
        "not",     "null",  "default",   "primary", "unique",         "references",
        "check",   "on",    "generated", "as",      "auto_increment", "constraint",
        "comment", "using", "identity",  "key"};
    const std::size_t begin = at_;
    while (at_ < text_.size() && IsWordChar(text_[at_])) ++at_;
    const std::string word = Lower(text_.substr(begin, at_ - begin));
    if (std::ranges::find(kConstraints, word) == kConstraints.end()) return "";
    return fmt::format("is more than a type: {} is for a statement of your own", word);
  }

  // (12,2), ('a','b'), (Point,4326), (MAX)
  std::string Arguments() {
    for (++at_; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == ')') return ++at_, "";
      if (c == '\'') {
        if (!Quoted(c)) return "has a quote that stays open";
      } else if (IsWordChar(c) || c == ',' || c == ' ') {
        ++at_;
      } else if (c == '-' && at_ + 1 < text_.size() && std::isdigit(text_[at_ + 1]) != 0) {
        ++at_;  // a scale
      } else {
        return "is no type: what is in its parentheses is no list of numbers, words or texts";
      }
    }
    return "has a parenthesis that stays open";
  }

  const std::string_view text_;
  const Dialect dialect_;
  std::size_t at_ = 0;
};

// In a key MySQL takes a text of some length alone: all of it so many bytes, four a character.
constexpr std::size_t kMostInKey = 3072;

std::string MysqlText(std::size_t key_columns, std::string_view collation) {
  return fmt::format(
      "{} CHARACTER SET utf8mb4 COLLATE {}",
      key_columns == 0 ? "longtext" : fmt::format("varchar({})", kMostInKey / 4 / key_columns),
      collation);
}

std::string MysqlBytes(std::size_t key_columns) {
  return key_columns == 0 ? "longblob" : fmt::format("varbinary({})", kMostInKey / key_columns);
}

std::string MysqlType(ValueKind kind, const Column& of, std::size_t key_columns,
                      std::string_view collation) {
  constexpr int kMostScale = 30;
  switch (kind) {
    case ValueKind::kWhole:
      return "bigint";
    case ValueKind::kLongWhole:
      return "decimal(65,0)";
    case ValueKind::kDecimal:
      return fmt::format("decimal(65,{})",
                         of.scale < 0 ? kMostScale : std::min(of.scale, kMostScale));
    case ValueKind::kBoolean:
      return "boolean";
    case ValueKind::kDate:
      return "date";
    case ValueKind::kMoment:
      return "datetime(6)";
    case ValueKind::kJson:
      return key_columns == 0 ? "json" : MysqlText(key_columns, collation);
    case ValueKind::kBytes:
      return MysqlBytes(key_columns);
    case ValueKind::kText:
      break;
  }
  return MysqlText(key_columns, collation);
}

// By ValueKind. SQLite: what a double would round is a text; `bigint` is no alias of the rowid.
constexpr std::array<std::string_view, 9> kPostgresTypes{
    "text", "bigint", "numeric", "numeric", "boolean", "date", "timestamptz", "jsonb", "bytea"};
constexpr std::array<std::string_view, 9> kSqliteTypes{
    "text", "bigint", "text", "text", "boolean", "date", "datetime", "json", "blob"};
constexpr std::array<std::string_view, 9> kValueWords{
    "texts",    "whole numbers",     "whole numbers of more than 64 bits",
    "decimals", "booleans",          "dates",
    "times",    "objects or arrays", "bytes"};

template <typename Table>
constexpr auto At(const Table& table, ValueKind kind) {
  return table[static_cast<std::size_t>(kind)];
}

// Without what stands between parentheses.
std::string WithoutArguments(std::string_view type) {
  std::string plain(type.substr(0, type.find('(')));
  const auto end = type.find(')');
  if (end != std::string_view::npos) plain += type.substr(end + 1);
  return plain;
}

using Alias = std::pair<std::string_view, std::string_view>;

// The first of them that the type begins with, as a whole word.
void Rename(std::string& type, std::span<const Alias> aliases) {
  for (const auto& [alias, name] : aliases) {
    if (!type.starts_with(alias)) continue;
    if (type.size() > alias.size() && IsWordChar(type[alias.size()])) continue;
    type.replace(0, alias.size(), name);
    return;
  }
}

// A column of them is of the type below.
constexpr std::array<Alias, 6> kSerials{{{"serial", "integer"},
                                         {"serial4", "integer"},
                                         {"bigserial", "bigint"},
                                         {"serial8", "bigint"},
                                         {"smallserial", "smallint"},
                                         {"serial2", "smallint"}}};

// As information_schema has it, but for display widths.
std::string OfMysql(std::string type) {
  constexpr std::array<Alias, 19> kAliases{{{"integer", "int"},
                                            {"boolean", "tinyint"},
                                            {"bool", "tinyint"},
                                            {"int1", "tinyint"},
                                            {"int2", "smallint"},
                                            {"int3", "mediumint"},
                                            {"middleint", "mediumint"},
                                            {"int4", "int"},
                                            {"int8", "bigint"},
                                            {"numeric", "decimal"},
                                            {"dec", "decimal"},
                                            {"fixed", "decimal"},
                                            {"double precision", "double"},
                                            {"real", "double"},
                                            {"float8", "double"},
                                            {"float4", "float"},
                                            {"character varying", "varchar"},
                                            {"national char", "char"},
                                            {"character", "char"}}};
  constexpr std::array<Alias, 8> kInFull{{{"char", "char(1)"},
                                          {"binary", "binary(1)"},
                                          {"bit", "bit(1)"},
                                          {"year(4)", "year"},
                                          {"decimal", "decimal(10,0)"},
                                          {"datetime(0)", "datetime"},
                                          {"timestamp(0)", "timestamp"},
                                          {"time(0)", "time"}}};
  constexpr std::string_view kFloat = "float(";
  constexpr int kMostOfFloat = 24;  // bits
  Rename(type, kAliases);
  const std::string plain = WithoutArguments(type);
  if (plain.find("int") != std::string::npos) return plain;
  // Behind it may be `unsigned`.
  std::size_t end = std::min(type.find_first_of(" ("), type.size());
  if (end < type.size() && type[end] == '(') end = std::min(type.rfind(')'), type.size() - 1) + 1;
  std::string base = type.substr(0, end);
  const bool pair = base.find(',') != std::string::npos;
  if (base.starts_with("decimal(") && !pair) base.insert(base.size() - 1, ",0");
  if (base.starts_with(kFloat) && !pair) {
    int bits = 0;
    std::from_chars(base.data() + kFloat.size(), base.data() + base.size(), bits);
    base = bits > kMostOfFloat ? "double" : "float";
  }
  for (const auto& [asked, name] : kInFull) {
    if (base != asked) continue;
    base = name;
    break;
  }
  return base + type.substr(end);
}

}  // namespace

std::string ProblemOfType(std::string_view text, Dialect dialect) {
  return TypeReader(text, dialect).Problem();
}

std::string TypeFor(const WantedColumn& column, const RowShape& shape, std::size_t place,
                    Dialect dialect, const TableTerms& terms) {
  if (!column.type.empty()) return column.type;
  if (dialect == Dialect::kMysql) {
    return MysqlType(column.kind, shape.columns[place], shape.IsKey(place) ? shape.key.size() : 0,
                     terms.collation);
  }
  const bool number = column.kind == ValueKind::kDecimal || column.kind == ValueKind::kLongWhole;
  // A fence compares numbers, whatever a double rounds.
  if (dialect == Dialect::kSqlite && number && shape.fence == place) return "numeric";
  return std::string(
      At(dialect == Dialect::kPostgres ? kPostgresTypes : kSqliteTypes, column.kind));
}

std::string TypeInCatalogue(std::string_view type, Dialect dialect) {
  std::string written;  // in small letters, with one blank between words and none elsewhere
  for (const char c : type) {
    const bool blank =
        c == ' ' &&
        (written.empty() || std::string_view("( ,").find(written.back()) != std::string::npos);
    if (blank) continue;
    const bool closes = c == '(' || c == ')' || c == ',';
    while (closes && written.ends_with(' ')) written.pop_back();
    written += c;
  }
  while (written.ends_with(' ')) written.pop_back();
  // The words of an enumeration keep their case.
  const std::size_t words = std::min(written.find('\''), written.size());
  const std::size_t behind = words == written.size() ? words : written.rfind('\'');
  written = Lower(std::string_view(written).substr(0, words)) +
            written.substr(words, behind - words) + Lower(std::string_view(written).substr(behind));
  // What a text is compared by is no part of its type.
  const std::size_t closed = written.rfind(')');
  const std::size_t from = closed == std::string::npos ? 0 : closed;
  for (const std::string_view clause : {" character set ", " charset ", " collate "}) {
    written.resize(std::min(written.find(clause, from), written.size()));
  }
  if (dialect == Dialect::kPostgres) Rename(written, kSerials);
  return dialect == Dialect::kMysql ? OfMysql(std::move(written)) : written;
}

bool IsSameType(std::string_view asked, std::string_view is, Dialect dialect) {
  if (asked == is) return true;
  if (dialect != Dialect::kMysql) return false;
  for (const std::string_view kind : {"text", "blob"}) {
    if (asked.starts_with(kind) && asked.substr(kind.size()).starts_with('(')) {
      return is.ends_with(kind);
    }
  }
  return false;
}

std::string ProblemOfKind(ValueKind kind, const ColumnFacts& column) {
  const CellKind to = column.cell.kind;
  const auto one_of = [to](std::initializer_list<CellKind> kinds) {
    return std::ranges::find(kinds, to) != kinds.end();
  };
  const bool anything = one_of({CellKind::kText, CellKind::kJson, CellKind::kOther,
                                CellKind::kChoice, CellKind::kBits, CellKind::kMap,
                                CellKind::kRange, CellKind::kInterval, CellKind::kTime}) ||
                        column.cell.elements || column.type.ends_with("[]");
  const bool decimal = one_of({CellKind::kDecimal, CellKind::kFloat});
  const bool whole = decimal || to == CellKind::kWhole;
  bool holds = anything;
  switch (kind) {
    case ValueKind::kWhole:
    case ValueKind::kLongWhole:
      holds |= whole;
      break;
    case ValueKind::kDecimal:
      holds |= decimal;
      break;
    case ValueKind::kBoolean:
      holds |= to == CellKind::kBoolean || (whole && column.cell.booleans);
      break;
    case ValueKind::kDate:
      holds |= one_of({CellKind::kDate, CellKind::kDateTime});
      break;
    case ValueKind::kMoment:
      holds |= to == CellKind::kDateTime;
      break;
    case ValueKind::kText:
    case ValueKind::kJson:
      break;
    case ValueKind::kBytes:
      holds |= to == CellKind::kBytes;
      break;
  }
  return holds ? "" : fmt::format("does not hold {}", WordsOf(kind));
}

std::string_view WordsOf(ValueKind kind) { return At(kValueWords, kind); }

}  // namespace fencepost::consumer
