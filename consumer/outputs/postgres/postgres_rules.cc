// What rules on rows ask of the table: an index, rights, types that compare.
#include <string>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/postgres/postgres_schema.h"

namespace fencepost::consumer {
namespace {

// As ON CONFLICT infers it: a unique index on exactly these columns, in any order.
constexpr const char* kUniqueIndex =
    "SELECT c.relkind NOT IN ('r', 'p') OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid"
    " AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL"
    " AND i.indexprs IS NULL AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text)"
    "   FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k JOIN pg_attribute a"
    "   ON a.attrelid = i.indrelid AND a.attnum = k) = (SELECT array_agg(n ORDER BY n)"
    "   FROM unnest($2::text[]) n)) FROM pg_class c WHERE c.oid = $1::oid";

constexpr const char* kRight =
    "SELECT CASE WHEN $2 = '' THEN has_table_privilege($1::oid, $3)"
    " ELSE has_column_privilege($1::oid, $2, $3) END";

class RulesCheck {
 public:
  RulesCheck(PgConnection& connection, const std::string& table_oid, const PgTarget& target,
             const RowShape& shape)
      : connection_(connection), table_oid_(table_oid), target_(target), shape_(shape) {}

  tl::expected<void, OutputError> All() {
    for (std::size_t place : shape_.key) {
      if (auto fine = Compares(place, "a key"); !fine) return fine;
    }
    if (shape_.fence) {
      if (auto fine = Compares(*shape_.fence, "a fence"); !fine) return fine;
      if (auto fine = FenceIsANumber(); !fine) return fine;
    }
    if (shape_.updates()) {
      if (auto fine = KeyIsUnique(); !fine) return fine;
    }
    return Rights();
  }

 private:
  tl::unexpected<OutputError> Bad(std::string what, std::string hint) const {
    return tl::unexpected(SchemaError(connection_, std::move(what), std::move(hint)));
  }
  tl::unexpected<OutputError> Failed(const PgFailure& failure) const {
    return tl::unexpected(ToOutputError(failure, connection_.where()));
  }

  // Any operator class will do: the database is asked to sort and to compare.
  tl::expected<void, OutputError> Compares(std::size_t place, std::string_view as) {
    const PgColumn& column = target_.columns[place];
    const auto done = connection_.Query(
        fmt::format("SELECT x < x FROM (SELECT NULL::{} AS x) s ORDER BY x", column.cast).c_str());
    if (done) return {};
    if (!done.error().sqlstate.starts_with("42")) return Failed(done.error());
    return Bad(fmt::format("{}.{} is {}, which cannot be compared", target_.table, column.name,
                           column.cast),
               fmt::format("{} needs a type with an order, such as bigint or timestamptz", as));
  }

  tl::expected<void, OutputError> FenceIsANumber() {
    const PgColumn& column = target_.columns[*shape_.fence];
    const Selector& selector = shape_.columns[*shape_.fence].selector;
    if (!IsNumber(selector) || column.category != 'S') return {};
    return Bad(fmt::format("the fence column {}.{} is {}: as text, {} 9 stands above 10",
                           target_.table, column.name, column.cast, selector.Text()),
               fmt::format("ALTER TABLE {} ALTER {} TYPE bigint", target_.table,
                           QuoteIdentifier(column.name)));
  }

  tl::expected<void, OutputError> KeyIsUnique() {
    std::string names;
    std::string array;
    for (const std::size_t place : shape_.key) {
      const std::string quoted = QuoteIdentifier(target_.columns[place].name);
      names += names.empty() ? quoted : ", " + quoted;
      array += array.empty() ? "{" : ",";
      array += '"';
      for (const char c : target_.columns[place].name) {
        if (c == '"' || c == '\\') array += '\\';
        array += c;
      }
      array += '"';
    }
    const auto unique = connection_.Query(kUniqueIndex, {table_oid_, array + "}"});
    if (!unique) return Failed(unique.error());
    if (PgBool(*unique, 0, 0)) return {};
    return Bad(fmt::format("{} has no unique index on ({}), so nothing tells which row to update",
                           target_.table, names),
               fmt::format("CREATE UNIQUE INDEX ON {} ({}), or correct key", target_.table, names));
  }

  tl::expected<void, OutputError> Rights() {
    if (shape_.deletes()) {
      if (auto fine = Right("", "DELETE"); !fine) return fine;
    }
    for (std::size_t place = 0; place < target_.columns.size(); ++place) {
      const bool key = shape_.IsKey(place);
      if ((key || shape_.fence == place) && (shape_.updates() || shape_.deletes())) {
        if (auto fine = Right(target_.columns[place].name, "SELECT"); !fine) return fine;
      }
      if (shape_.updates() && !key) {
        if (auto fine = Right(target_.columns[place].name, "UPDATE"); !fine) return fine;
      }
    }
    return {};
  }

  tl::expected<void, OutputError> Right(const std::string& column, const std::string& right) {
    const auto has = connection_.Query(kRight, {table_oid_, column, right});
    if (!has) return Failed(has.error());
    if (PgBool(*has, 0, 0)) return {};
    return tl::unexpected(
        DeniedError(connection_,
                    fmt::format("no right to {} {}{}{}", right, target_.table,
                                column.empty() ? "" : ".", column),
                    fmt::format("GRANT {} ON {} to this role", right, target_.table)));
  }

  PgConnection& connection_;
  const std::string& table_oid_;
  const PgTarget& target_;
  const RowShape& shape_;
};

}  // namespace

tl::expected<void, OutputError> CheckRules(PgConnection& connection, const std::string& table_oid,
                                           const PgTarget& target, const RowShape& shape) {
  if (!shape.updates() && !shape.deletes()) return {};
  return RulesCheck(connection, table_oid, target, shape).All();
}

}  // namespace fencepost::consumer
