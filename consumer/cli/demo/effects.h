// Where the demo's effects go, seen from the demo's own side: SQL written apart from the product's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "locking/base/error.h"

namespace fencepost::cli {

class Effects {
 public:
  virtual ~Effects() = default;
  // The output section of the pipeline file, indented by two.
  [[nodiscard]] virtual std::string OutputYaml() const = 0;
  // While locked, no worker can commit an effect: they gather leases and wait.
  virtual tl::expected<void, Error> Lock() = 0;
  void Unlock() { (void)Run("ROLLBACK", nullptr); }
  tl::expected<std::size_t, Error> Count();  // rows, duplicates included
  // How many rows each id has.
  tl::expected<std::map<std::string, int>, Error> Audit();

 protected:
  explicit Effects(std::string table) : table_(std::move(table)) {}
  // The first two columns of each row; nullptr: nobody looks at them.
  using RowVisitor = std::function<void(const char* first, const char* second)>;
  virtual tl::expected<void, Error> Run(const std::string& sql, const RowVisitor& visit) = 0;

  const std::string table_;
};

tl::expected<std::unique_ptr<Effects>, Error> MakeSqliteEffects(const std::string& path);
// A table of its own, dropped at the end with the ledger rows of `pipeline`.
tl::expected<std::unique_ptr<Effects>, Error> MakePostgresEffects(const std::string& dsn,
                                                                  const std::string& pipeline);

}  // namespace fencepost::cli
