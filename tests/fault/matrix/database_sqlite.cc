#include <filesystem>

#include <fmt/format.h>

#include "tests/fault/matrix/database.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::matrix {

using testing::Effect;
using testing::TcpProxy;

namespace {

// A file that all workers share. There is no server to which something could happen.
class Sqlite : public Database {
 public:
  Sqlite() : Database(std::make_unique<testing::SqliteFiles>(Folder().path().string())) {}

  [[nodiscard]] std::string Output(const std::string& database) const override {
    return fmt::format("  sqlite:\n    path: {}\n", Path(database));
  }
  [[nodiscard]] const char* worker() const override { return ""; }
  void MakeEffects(const testing::EffectsTable& table, const testing::SmallDisk*) override {
    table.Exec(
        "DROP TABLE effects; CREATE TABLE effects (order_id text NOT NULL, amount int NOT NULL,"
        " source_partition int, source_offset bigint, fence bigint);"
        " CREATE TABLE second_effects (order_id text NOT NULL, amount int NOT NULL)");
  }
  // Nothing tells where a transaction ends: rows of one may have any order.
  [[nodiscard]] std::vector<Effect> ReadEffects(const testing::EffectsTable& table) override {
    std::vector<Effect> effects;
    for (const auto& row :
         table.Exec(fmt::format("SELECT {} FROM effects ORDER BY rowid", kEffectColumns))) {
      effects.push_back(EffectOf(row));
    }
    return effects;
  }
  void Drop(const std::string& database) override { std::filesystem::remove(Path(database)); }
  [[nodiscard]] Seen Commits(TcpProxy::Way) const override {
    return [](const TcpProxy::Passing&) { return false; };
  }

 private:
  static testing::TempDir& Folder() {
    static testing::TempDir folder;
    return folder;
  }
  static std::string Path(const std::string& database) { return Folder().File(database + ".db"); }
};

}  // namespace

std::unique_ptr<Database> MakeSqlite() { return std::make_unique<Sqlite>(); }

}  // namespace fencepost::matrix
