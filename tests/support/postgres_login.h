// A PostgreSQL that wants passwords, and the file that has them.
#pragma once

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/support/postgres_server.h"

namespace fencepost::testing {

// From now on everybody but the superuser logs in with a password.
inline void DemandPasswords(PostgresServer& server) {
  server.Exec(
      fmt::format("COPY (VALUES ('host all postgres 127.0.0.1/32 trust'),"
                  " ('host all all 127.0.0.1/32 scram-sha-256')) TO '{}'",
                  server.Value("SHOW hba_file")));
  server.Restart();
}

// For `passfile=`, with this password for everything. libpq ignores one that others may read.
inline std::string Passfile(const TempDir& folder, const std::string& password) {
  const std::string path = folder.Write("passfile", "*:*:*:*:" + password + "\n");
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return path;
}

}  // namespace fencepost::testing
