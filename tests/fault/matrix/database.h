// The databases of the matrix, one of which a trial writes to: a server behind a proxy, or
// the first of a pair, and what is not the same for each kind.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/audit.h"
#include "tests/support/pipeline_servers.h"
#include "tests/support/small_disk.h"
#include "tests/support/sql_server.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::matrix {

enum class DatabaseKind : std::uint8_t { kPostgres, kMariadb, kSqlite };
inline constexpr std::array kDatabaseNames = {"postgres", "mariadb", "sqlite"};
inline constexpr std::string_view NameOf(DatabaseKind kind) {
  return kDatabaseNames.at(static_cast<std::size_t>(kind));
}
std::optional<DatabaseKind> DatabaseNamed(std::string_view name);

class Database : public testing::SqlServer {
 public:
  [[nodiscard]] testing::TcpProxy& proxy() { return proxy_; }
  [[nodiscard]] const testing::TcpProxy& proxy() const { return proxy_; }

  // It runs, alone, and nothing is in the way.
  void Reset();
  // A second server follows, and a commit is answered when it has it, too.
  void AddReplica();
  // The first dies, and the second is the database now, until Reset.
  void FailOver();

  // Of the pipeline's output: which it is, and where, for a role that may do little.
  [[nodiscard]] virtual std::string Output(const std::string& database) const = 0;
  [[nodiscard]] virtual const char* worker() const = 0;  // that role
  // A table `effects` into which that role may insert, and nothing else. On that disk, if any, and
  // then a row takes 7 KiB.
  virtual void MakeEffects(const testing::EffectsTable& table,
                           const testing::SmallDisk* disk = nullptr) = 0;
  // Its rows in the order in which they took effect, which is that of the commits: not that in
  // which transactions began, since those of two workers may overlap.
  [[nodiscard]] virtual std::vector<testing::Effect> ReadEffects(
      const testing::EffectsTable& table) = 0;
  virtual void Drop(const std::string& database) = 0;
  // By position: what the ledger has of each partition.
  [[nodiscard]] std::map<int, std::string> ReadRanges(const testing::EffectsTable& table,
                                                      const std::string& pipeline) const;

  // For TcpProxy::Watch: whether a COMMIT goes by, or the answer to one.
  using Seen = std::function<bool(const testing::TcpProxy::Passing&)>;
  [[nodiscard]] virtual Seen Commits(testing::TcpProxy::Way way) const = 0;
  virtual void EndSessions() {}  // of the workers
  // Of the workers' sessions, those that wait for a lock of this table: as the server names each,
  // with the worker's name behind the last slash; empty: it does not know it.
  [[nodiscard]] virtual std::vector<std::string> WaitFor(const testing::EffectsTable& /*of*/,
                                                         const std::string& /*table*/) const {
    return {};
  }
  // So many connections it lets the role have, and what it says to one more.
  [[nodiscard]] virtual int MostConnections() const { return 0; }
  [[nodiscard]] virtual bool IsFull(std::string_view) const { return false; }
  // What a worker quotes of it where the disk is full.
  [[nodiscard]] virtual std::string_view NoRoom() const { return ""; }

  void Start() override { server().Start(); }
  void Stop() override { server().Stop(); }
  void Kill() override { server().Kill(); }
  void Pause() override { server().Pause(); }
  void Resume() override { server().Resume(); }
  [[nodiscard]] int port() const override { return server().port(); }
  [[nodiscard]] Kind kind() const override { return server().kind(); }
  [[nodiscard]] std::unique_ptr<testing::SqlSession> Open(
      const std::string& database, const std::string& user = "") const override {
    return server().Open(database, user);
  }

 protected:
  explicit Database(std::unique_ptr<testing::SqlServer> first)
      : first_(std::move(first)), proxy_(first_->port()) {}
  [[nodiscard]] testing::SqlServer& first() const { return *first_; }
  [[nodiscard]] testing::SqlServer& server() const { return failed_over_ ? *second_ : *first_; }
  // It follows the first, which waits for it with each commit.
  virtual std::unique_ptr<testing::SqlServer> MakeReplica() { return nullptr; }
  // It has applied what it has of the first, which is gone, and takes writes.
  virtual void Promote(testing::SqlServer&) {}
  virtual void Forget() {}  // the first: trials that were, and replicas

 private:
  std::unique_ptr<testing::SqlServer> first_;
  std::unique_ptr<testing::SqlServer> second_;
  bool failed_over_ = false;
  testing::TcpProxy proxy_;
};

std::unique_ptr<Database> MakePostgres();
std::unique_ptr<Database> MakeMariadb();
std::unique_ptr<Database> MakeSqlite();

// What each of them allows at a time.
inline constexpr int kConnections = 40;
inline constexpr int kWide = 7000;  // bytes of a row on a small disk
// The columns that ReadEffects reads first, and what it makes of them.
inline constexpr const char* kEffectColumns =
    "order_id, amount, source_partition, source_offset, fence";
testing::Effect EffectOf(const testing::SqlServer::Row& row);

}  // namespace fencepost::matrix
