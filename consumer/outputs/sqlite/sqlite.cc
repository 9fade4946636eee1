// The SQLite output: for one host. Many processes may share the file; one writes at a time.
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/outputs/sqlite/sqlite_output.h"
#include "locking/base/planted.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {
namespace {

// LockIds has found those that are there, and the file is locked since.
std::string InsertOnce() {
  return Planted("sqlite_effect_of_a_known_id") ? "INSERT OR IGNORE" : "INSERT";
}

// The statements on the table of effects: parameters ?1… are the shape's columns, whose affinity
// holds for what they are compared with.
RowSql SqlOf(const SqliteTable& table, const RowShape& shape,
             const std::vector<bool>& omitted = {}) {
  RowSql sql{.shape = shape, .table = table.name, .cell = [](std::size_t column) {
               return fmt::format("?{}", column + 1);
             }};
  if (!omitted.empty()) sql.omits = [omitted](std::size_t column) { return omitted[column]; };
  return sql;
}

std::string InsertSql(const SqliteTable& table, const RowShape& shape,
                      const std::vector<bool>& omitted = {}) {
  const RowSql sql = SqlOf(table, shape, omitted);
  const std::string names = sql.Names();
  if (names.empty()) {  // no upsert is written with it, and no key is left out of one
    return fmt::format("INSERT{} INTO {} DEFAULT VALUES",
                       shape.on_conflict == OnConflict::kIgnore ? " OR IGNORE" : "", table.name);
  }
  return fmt::format("INSERT INTO {} AS t ({}) VALUES ({}){}", table.name, names, sql.Values(),
                     OnConflictSql(shape));
}

// SQLite's own reading of a text may be off by the last bit.
std::optional<double> DoubleOf(const CellType& type, std::string_view cell) {
  if (type.kind != CellKind::kFloat || cell.find_first_of(".eE") == std::string_view::npos) {
    return std::nullopt;
  }
  const auto value = FloatOf<double>(cell);
  return value ? std::optional(*value) : std::nullopt;
}

}  // namespace

OutputError SqliteOutput::Refused(const SqliteFailure& failure) const {
  OutputError error = ToOutputError(failure, options_.path);
  if (!connection_.interrupted()) {
    return Refusal(std::move(error), FailureOf(failure), failure.text);
  }
  error.error.code = "interrupted";
  error.error.hint.clear();
  return error;
}

void SqliteOutput::Disconnect() {
  for (SqliteStatement& statement : statements_) statement.reset();
  effects_of_.clear();
  connection_.Close();
}

SqliteOutput::Answer<void> SqliteOutput::Connect() {
  Disconnect();
  if (connection_.interrupted()) {
    return tl::unexpected(Refused({SQLITE_INTERRUPT, "interrupted for shutdown"}));
  }
  if (options_.create && !terms_.look_only && !file_ && SqliteFileIsMissing(options_.path)) {
    if (auto made = MakeSqliteFile(options_.path); !made) return made;
  }
  if (auto opened = connection_.Open(); !opened) return tl::unexpected(Refused(opened.error()));
  auto target = LearnTarget(connection_, options_, *effects_, AskedOf(file_.has_value()));
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  cells_.clear();
  types_.clear();
  for (std::size_t table = 0; table < target_.tables.size(); ++table) {
    cells_.emplace_back(target_.tables[table], rows_.of(table).shape());
  }
  for (SqliteCells& cells : cells_) types_.push_back(&cells);
  if (auto prepared = PrepareStatements(); !prepared) return prepared;
  const HeldFile& file = connection_.file();
  const bool same = file_ && file_->id() == file.id();
  auto complete = CheckLostCommits(same, "another file took its place");
  if (complete) file_ = file;
  return complete;
}

SqliteOutput::Answer<void> SqliteOutput::PrepareStatements() {
  const auto prepare = [&](const std::string& sql, SqliteStatement& as) -> Answer<void> {
    if (sql.empty()) return {};
    auto statement = connection_.Prepare(sql);
    if (!statement) return tl::unexpected(Refused(statement.error()));
    as = std::move(*statement);
    return {};
  };
  Answer<void> done;
  for (std::size_t place = 0; place < target_.tables.size() && done; ++place) {
    const RowShape& shape = rows_.of(place).shape();
    const RowSql sql = SqlOf(target_.tables[place], shape);
    EffectStatements& of = effects_of_.emplace_back();
    done = prepare(InsertSql(target_.tables[place], shape), of.insert);
    if (done && shape.updates() && shape.MayOmit()) done = prepare(sql.Find(), of.find);
    if (done && shape.fence) done = prepare(sql.FindNewer(), of.find_newer);
    if (done && shape.deletes()) done = prepare(sql.Delete(), of.remove);
  }
  Texts ledger;
  LedgerStatements(terms_.by_position, ledger);
  for (std::size_t i = 0; i < kStatements && done; ++i) {
    done = prepare(ledger.at(i), statements_.at(i));
  }
  return done;
}

sqlite3_stmt* SqliteOutput::Bound(Statement statement,
                                  std::initializer_list<std::string_view> texts) {
  sqlite3_stmt* bound = statements_.at(statement).get();
  int at = 0;
  for (const std::string_view text : texts) {
    sqlite3_bind_text64(bound, ++at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  return bound;
}

SqliteOutput::Answer<bool> SqliteOutput::Step(sqlite3_stmt* statement) {
  auto row = connection_.Step(statement);
  if (!row) return tl::unexpected(Refused(row.error()));
  return *row;
}

SqliteOutput::Answer<void> SqliteOutput::Run(sqlite3_stmt* statement) {
  if (auto done = connection_.Step(statement); !done) return tl::unexpected(Refused(done.error()));
  return {};
}

SqliteOutput::Answer<void> SqliteOutput::Exec(const char* sql) {
  if (auto done = connection_.Exec(sql); !done) return tl::unexpected(Refused(done.error()));
  return {};
}

std::string SqliteOutput::Timestamp(std::chrono::system_clock::time_point at) {
  return Rfc3339(std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()));
}

std::string SqliteOutput::Time() const { return Timestamp(std::chrono::system_clock::now()); }

SqliteOutput::Answer<void> SqliteOutput::Begin() {
  return Exec(Planted("sqlite_without_a_transaction") ? "SELECT 1" : "BEGIN IMMEDIATE");
}

SqliteOutput::Answer<void> SqliteOutput::Commit() {
  const bool apart = Planted("sqlite_without_a_transaction");
  if (auto done = Exec(apart ? "SELECT 1" : "COMMIT"); !done) return done;
  if (!connection_.Moved()) return {};
  // Nobody will find in it what was committed. Written again, it is into the file that is there
  // now.
  return tl::unexpected(
      OutputError{.error = {.code = "output_replaced",
                            .what = "the file was moved or replaced while it was written to",
                            .where = options_.path,
                            .hint = "the batch is written again"},
                  .retry_at_once = true});
}

void SqliteOutput::RollBack() {
  if (connection_.open() && sqlite3_get_autocommit(connection_.db()) == 0) {
    (void)connection_.Exec("ROLLBACK");
  }
}

// Prepared statements at most, one for each set of columns that a row left out.
constexpr std::size_t kMostPartial = 200;

SqliteOutput::Answer<sqlite3_stmt*> SqliteOutput::Partial(Change change, const Row& row) {
  const TableRows rows = rows_.of(row.table);
  const SqliteTable& table = target_.tables[row.table];
  std::vector<bool> omitted;
  for (std::size_t column = 0; column < rows.columns(); ++column) {
    omitted.push_back(rows.omits(row.record, column, row.row));
  }
  auto& partial = effects_of_[row.table].partial;
  if (partial.size() > kMostPartial) partial.clear();
  SqliteStatement& statement = partial[{change, omitted}];
  if (statement == nullptr) {
    auto made =
        connection_.Prepare(change == Change::kUpdate ? SqlOf(table, rows.shape(), omitted).Update()
                                                      : InsertSql(table, rows.shape(), omitted));
    if (!made) return tl::unexpected(Refused(made.error()));
    statement = std::move(*made);
  }
  return statement.get();
}

SqliteOutput::Answer<std::size_t> SqliteOutput::ChangeRows(Change change, const Rows& rows) {
  const Row& row = rows.front();
  const EffectStatements& of = effects_of_[row.table];
  Answer<sqlite3_stmt*> statement = of.insert.get();
  if (change == Change::kDelete) {
    statement = of.remove.get();
  } else if (rows_.of(row.table).omits_any(row.record, row.row)) {
    statement = Partial(change, row);
  }
  if (!statement) return tl::unexpected(statement.error());
  BindCells(*statement, row, change == Change::kDelete);
  return Run(*statement).map([&] {
    return std::size_t{sqlite3_changes(connection_.db()) == 0 ? 1U : 0U};
  });
}

SqliteOutput::Answer<bool> SqliteOutput::Finds(sqlite3_stmt* find, const Row& row) {
  BindCells(find, row, true);
  auto found = Step(find);
  sqlite3_reset(find);
  return found;
}

SqliteOutput::Answer<SqliteOutput::Rows> SqliteOutput::FindNewer(const Rows& rows) {
  Rows newer;
  for (const Row& row : rows) {
    const auto found = Finds(effects_of_[row.table].find_newer.get(), row);
    if (!found) return tl::unexpected(found.error());
    if (*found) newer.push_back(row);
  }
  return newer;
}

// The parameters of all statements; a deletion uses those of key and fence.
void SqliteOutput::BindCells(sqlite3_stmt* statement, const Row& row, bool key_alone) {
  const TableRows rows = rows_.of(row.table);
  const std::vector<CellType>& cells = target_.tables[row.table].cells;
  for (std::size_t column = 0; column < rows.columns(); ++column) {
    if (key_alone && !rows.shape().IsKey(column) && rows.shape().fence != column) continue;
    const int at = static_cast<int>(column) + 1;
    const auto cell = rows.cell(row.record, column, row.row);
    if (!cell) {
      sqlite3_bind_null(statement, at);
    } else if (cells[column].kind == CellKind::kBytes) {
      sqlite3_bind_blob64(statement, at, cell->data(), cell->size(), SQLITE_STATIC);
    } else if (const auto real = DoubleOf(cells[column], *cell)) {
      sqlite3_bind_double(statement, at, *real);
    } else {  // the column's affinity makes it a number where it is one
      sqlite3_bind_text64(statement, at, cell->data(), cell->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
}

void SqliteOutput::LedgerStatements(bool by_position, Texts& sql) {
  if (by_position) {
    sql[kReadPosition] =
        "SELECT done, token, worker, anchors, forgotten, updated_at FROM fencepost_positions"
        " WHERE pipeline = ?1 AND cluster = ?2 AND topic = ?3 AND \"partition\" = ?4";
    sql[kStorePosition] =
        "INSERT OR REPLACE INTO fencepost_positions (pipeline, cluster, topic, worker, done,"
        " anchors, updated_at, \"partition\", token, forgotten)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    sql[kHasTopic] =
        "SELECT 1 FROM fencepost_positions WHERE pipeline = ?1 AND topic = ?2 AND done <> '{}'"
        " LIMIT 1";
    sql[kForgetLetters] =
        "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND token = 0 AND record_id > ?2"
        " AND record_id < ?3 AND CAST(substr(record_id, length(?2) + 1) AS INTEGER) >= ?4"
        " AND CAST(substr(record_id, length(?2) + 1) AS INTEGER) < ?5";
  } else {
    sql[kHasTopic] =
        "SELECT 1 FROM fencepost_ledger WHERE pipeline = ?1"
        " AND substr(source, 1, length(?2) + 1) = ?2 || '/' LIMIT 1";
  }
  sql[kFindId] =
      "SELECT token, source, content_crc, worker, completed_at FROM fencepost_ledger"
      " WHERE pipeline = ?1 AND record_id = ?2";
  sql[kInsertId] = InsertOnce() +
                   " INTO fencepost_ledger"
                   " (pipeline, record_id, worker, source, completed_at, token, content_crc)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
  sql[kDeleteId] = Planted("forget_of_all_pipelines")
                       ? "DELETE FROM fencepost_ledger WHERE ?1 <> '' AND record_id = ?2"
                       : "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id = ?2";
  sql[kDeleteNothingWritten] =
      "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id = ?2 AND token = 0";
  sql[kOldIds] =
      "SELECT record_id, source, completed_at FROM fencepost_ledger WHERE pipeline = ?1"
      " AND completed_at >= ?2 AND completed_at < ?3 ORDER BY completed_at LIMIT ?4";
  sql[kDeleteOldId] =
      "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id = ?2 AND source = ?3"
      " AND completed_at = ?4";
}

std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker, OutputTerms terms) {
  return std::make_unique<SqliteOutput>(options, std::move(pipeline), std::move(worker),
                                        std::move(terms));
}

}  // namespace fencepost::consumer
