// Where the demo's effects go, seen from the demo's own side: SQL written apart from the product's.
#pragma once

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
  virtual void Unlock() = 0;
  virtual tl::expected<std::size_t, Error> Count() = 0;  // rows, duplicates included
  // How many rows each id has.
  virtual tl::expected<std::map<std::string, int>, Error> Audit() = 0;
};

tl::expected<std::unique_ptr<Effects>, Error> MakeSqliteEffects(const std::string& path);
// A table of its own, dropped at the end with the ledger rows of `pipeline`.
tl::expected<std::unique_ptr<Effects>, Error> MakePostgresEffects(const std::string& dsn,
                                                                  const std::string& pipeline);

}  // namespace fencepost::cli
