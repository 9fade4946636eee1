// The user's own statement. It runs on the server for the records whose ledger row was inserted,
// and which those are the client cannot know beforehand; asking would mean a turn of the client
// inside the transaction. So the statement becomes the body of a function of this session, which
// the write calls for the right rows. (A function in SQL is parsed and planned once a call of the
// write.)
#include <string>

#include <fmt/format.h>

#include "consumer/json/json_digest.h"
#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/postgres/postgres_schema.h"

namespace fencepost::consumer {
namespace {

// $tag$…$tag$ with a tag that the text does not hold.
std::string DollarQuoted(const std::string& text) {
  std::string tag = "$fencepost$";
  for (int i = 0; text.find(tag) != std::string::npos; ++i) tag = fmt::format("$fencepost{}$", i);
  return tag + text + tag;
}

// `key`: of the file, that has the statement.
OutputError StatementError(const PgConnection& connection, const PgFailure& failure,
                           const std::string& key) {
  OutputError error = ToOutputError(failure, connection.where());
  if (failure.kind != PgFailure::Kind::kServer) return error;
  error.error.what = fmt::format("{}: {}", key, error.error.what);
  if (failure.sqlstate == "42P18" || failure.sqlstate == "42P08") {
    error.error.hint =
        "say the parameter's type, as in $1::text, or leave out an arg that is not used";
  } else if (error.error.code == "output_schema") {
    error.error.hint = "it is one statement, with $1, $2, … for args; try it with PREPARE in psql";
  }
  return error;
}

}  // namespace

std::string StatementFunction(const std::string& statement) {
  return fmt::format("pg_temp.fencepost_statement_{:016x}",
                     DigestText(JsonKind::kString, statement));
}

tl::expected<std::vector<PgColumn>, OutputError> LearnStatement(PgConnection& connection,
                                                                const EffectShape& effect,
                                                                std::size_t place) {
  const std::string& statement = effect.effect.statement;
  const RowShape& shape = effect.shape;
  const std::string key = effect.SectionIn("output.postgres") + ".statement";
  const std::string probe = fmt::format("fencepost_probe_{}", place);
  const auto failed = [&](const PgFailure& failure) {
    return tl::unexpected(StatementError(connection, failure, key));
  };
  if (auto done = connection.PrepareStatement(probe.c_str(), statement, {}); !done) {
    return failed(done.error());
  }
  const auto types = connection.ParameterTypes(probe.c_str());
  if (!types) return failed(types.error());
  if (types->size() != shape.columns.size()) {
    return tl::unexpected(SchemaError(connection.where(),
                                      fmt::format("{} has {} parameters, and args has {} selectors",
                                                  key, types->size(), shape.columns.size()),
                                      "args are $1, $2, … in their order"));
  }
  std::vector<PgColumn> columns;
  std::string list;
  for (std::size_t i = 0; i < types->size(); ++i) {
    const auto type = connection.Query(sql::postgres_type, {std::to_string((*types)[i])});
    if (!type) return failed(type.error());
    const auto base = PgNumber<Oid>(PgText(*type, 0, 0));
    const auto element = PgNumber<Oid>(PgText(*type, 0, 2));
    columns.push_back({.name = shape.columns[i].name,
                       .base = base,
                       .cast = std::string(PgText(*type, 0, 1)),
                       .collation = "",
                       .declared = std::string(PgText(*type, 0, 1)),
                       .cell = PgCellType(base, -1),
                       .element = PgElementType(element, -1)});
    list += (i == 0 ? "" : ", ") + columns.back().cast;
  }
  const std::string function =
      fmt::format("CREATE OR REPLACE FUNCTION {}({}) RETURNS integer LANGUAGE sql VOLATILE AS {}",
                  StatementFunction(statement), list, DollarQuoted(statement + "\n;SELECT 1"));
  if (auto done = connection.Query(function.c_str()); !done) {
    if (done.error().sqlstate != "42501") return failed(done.error());
    return tl::unexpected(DeniedError(
        connection.where(), fmt::format("{}: {}", key, done.error().text),
        "the statement runs as a function of the session: GRANT TEMPORARY ON DATABASE … to this "
        "role"));
  }
  return columns;
}

}  // namespace fencepost::consumer
