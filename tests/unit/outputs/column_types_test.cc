// Types of columns, as SQL.
#include "consumer/outputs/tables/column_types.h"

#include <gtest/gtest.h>

#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

TEST(ColumnTypes, HoldAllThatTheirKindHolds) {
  RowShape shape;
  shape.columns = Columns({{"a", "key"}, {"b", "key"}, {"fence", "key"}, {"plain", "key"}});
  shape.key = {0, 1};
  shape.fence = 2;
  const TableTerms terms{.output = "", .where = "", .ledger_file = "", .collation = "some_bin"};
  struct Row {
    Dialect dialect;
    ValueKind kind;
    std::size_t place;
    const char* type;
  };
  const Row rows[] = {
      {Dialect::kMysql, ValueKind::kText, 0, "varchar(384) CHARACTER SET utf8mb4 COLLATE some_bin"},
      {Dialect::kMysql, ValueKind::kJson, 0, "varchar(384) CHARACTER SET utf8mb4 COLLATE some_bin"},
      {Dialect::kMysql, ValueKind::kText, 3, "longtext CHARACTER SET utf8mb4 COLLATE some_bin"},
      {Dialect::kMysql, ValueKind::kBytes, 1, "varbinary(1536)"},
      {Dialect::kMysql, ValueKind::kDecimal, 3, "decimal(65,30)"},
      {Dialect::kSqlite, ValueKind::kDecimal, 3, "text"},
      {Dialect::kSqlite, ValueKind::kDecimal, 2, "numeric"},
      {Dialect::kSqlite, ValueKind::kLongWhole, 2, "numeric"},
      {Dialect::kPostgres, ValueKind::kDecimal, 2, "numeric"}};
  for (const Row& row : rows) {
    EXPECT_EQ(TypeFor({.kind = row.kind}, shape, row.place, row.dialect, terms), row.type);
  }
}

TEST(ColumnTypes, AreOneTypeAndNothingMore) {
  for (const char* type :
       {"text", "numeric(12,2)", "numeric(3, -2)", "text[]", "text[3]",
        "timestamp(3) with time zone", "double precision", "\"my type\"", "shop.\"Money\"",
        "enum('a','it''s; --','b,)')", "varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "int unsigned", "text COLLATE \"C\"", "geometry(Point,4326)", "Größe"}) {
    EXPECT_EQ(ProblemOfType(type, Dialect::kPostgres), "") << type;
  }
  EXPECT_EQ(ProblemOfType("`my type`", Dialect::kMysql), "");
  for (const char* type : {"",
                           "  ",
                           "text; DROP TABLE users",
                           "text -- note",
                           "text /* note */",
                           "text # note",
                           "text, \"more\" text",
                           "text) ; (",
                           "numeric(12",
                           "\"open",
                           "text NOT NULL",
                           "text PRIMARY KEY",
                           "int key",
                           "[text, more text]",
                           "text[",
                           "text]",
                           "text DEFAULT (now())",
                           "int CHECK (id > 0)",
                           "text\nNOT",
                           "e'\\''",
                           "numeric((1))",
                           "text REFERENCES users(id)",
                           "enum('a\\')",
                           "text'x'",
                           "bigint AS (1)",
                           "enum('a' || 'b')",
                           "x(1=1)",
                           "text UNION SELECT $$`$$; DROP TABLE users; --`",
                           "$$('$$; DROP TABLE users; --')",
                           "x($$)",
                           "text `); DROP TABLE users; --`"}) {
    EXPECT_NE(ProblemOfType(type, Dialect::kPostgres), "") << type;
    EXPECT_NE(ProblemOfType(type, Dialect::kSqlite), "") << type;
  }
}

TEST(ColumnTypes, AreComparedAsTheCatalogueWritesThem) {
  struct Row {
    const char* file;
    const char* catalogue;
    bool same;
    Dialect dialect = Dialect::kMysql;
  };
  const Row rows[] = {
      {"INTEGER", "int(11)", true},
      {"bigint unsigned", "bigint(20) unsigned", true},
      {"bigint", "bigint(20) unsigned", false},
      {"boolean", "tinyint(1)", true},
      {"numeric( 12 , 2 )", "decimal(12,2)", true},
      {"decimal(12)", "decimal(12,0)", true},
      {"decimal", "decimal(10,0)", true},
      {"decimal(12,2)", "decimal(10,2)", false},
      {"varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "varchar(10)", true},
      {"double precision", "double", true},
      {"realm", "double", false},
      {"enum('A','b')", "enum('A','b')", true},
      {"enum('A','b')", "enum('a','b')", false},
      {"datetime(3)", "datetime(6)", false},
      {"Varchar( 20 )", "VARCHAR(20)", true, Dialect::kSqlite},
      {"text", "TEXT", true, Dialect::kSqlite},
      {"char", "char(1)", true},
      {"character(10)", "char(10)", true},
      {"bit", "bit(1)", true},
      {"year", "year(4)", true},
      {"binary", "binary(1)", true},
      {"int8", "bigint(20)", true},
      {"fixed(10,2)", "decimal(10,2)", true},
      {"decimal unsigned", "decimal(10,0) unsigned", true},
      {"decimal(5) unsigned", "decimal(5,0) unsigned", true},
      {"decimal unsigned", "decimal(10,0)", false},
      {"datetime(0)", "datetime", true},
      {"float(53)", "double", true},
      {"float(24)", "float", true},
      {"float(53)", "float", false},
      {"text(100)", "tinytext", true},
      {"TEXT (70000) CHARACTER SET utf8mb4", "mediumtext", true},
      {"blob(9)", "tinyblob", true},
      {"text(100)", "tinyblob", false},
      {"text", "tinytext", false},
      {"ENUM('A') CHARACTER SET utf8mb4", "enum('A')", true},
      {"enum('a collate b')", "enum('a')", false},
      {"text COLLATE NOCASE", "TEXT", true, Dialect::kSqlite},
      {"text COLLATE \"C\"", "text", true, Dialect::kPostgres},
      {"bigserial", "bigint", true, Dialect::kPostgres},
      {"serial", "integer", true, Dialect::kPostgres},
      {"integer", "INT", false, Dialect::kSqlite}};
  for (const Row& row : rows) {
    EXPECT_EQ(IsSameType(TypeInCatalogue(row.file, row.dialect),
                         TypeInCatalogue(row.catalogue, row.dialect), row.dialect),
              row.same)
        << row.file << " " << row.catalogue << ": " << TypeInCatalogue(row.file, row.dialect);
  }
}

}  // namespace
}  // namespace fencepost::consumer
