// A stream of orders with duplicates, applied to a SQLite table exactly once by racing workers.
//   exactly_once_stream --redis A,B,C --db shop.db [--items 200] [--work-ms 0] [--ttl-ms 10000]
// The lock keeps two workers from doing the same at once; what makes it exactly once is the
// transaction: the order's id in a ledger with a unique key, and its effect, together or not at
// all. The token is kept as evidence of which lease wrote it.
#include <sqlite3.h>

#include <thread>

#include "arguments.h"

namespace {

bool Run(sqlite3* db, const std::string& sql) {
  char* error = nullptr;
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error) == SQLITE_OK) return true;
  std::fprintf(stderr, "%s\n", error);
  sqlite3_free(error);
  return false;
}

// False: it is not known to be written, so it is not marked done and comes again.
bool Apply(sqlite3* db, const std::string& id, int amount, fencepost::locking::Token token) {
  if (!Run(db, "BEGIN IMMEDIATE")) return false;
  bool fine = Run(db, "INSERT OR IGNORE INTO ledger VALUES ('" + id + "', " +
                          std::to_string(token.value()) + ")");
  if (fine && sqlite3_changes(db) == 1) {  // else: its effect is written already
    fine = Run(db, "INSERT INTO effects VALUES ('" + id + "', " + std::to_string(amount) + ")");
  }
  if (fine && Run(db, "COMMIT")) return true;
  Run(db, "ROLLBACK");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace example;
  const Arguments arguments(argc, argv);
  sqlite3* db = nullptr;
  if (sqlite3_open(arguments.Get("db").c_str(), &db) != SQLITE_OK) return 1;
  sqlite3_busy_timeout(db, 10'000);
  if (!Run(db,
           "PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
           "CREATE TABLE IF NOT EXISTS ledger (id TEXT PRIMARY KEY, token INTEGER NOT NULL);"
           "CREATE TABLE IF NOT EXISTS effects (id TEXT, amount INTEGER); COMMIT")) {
    return 1;
  }
  const auto lock = ConnectOrExit(arguments, "orders");
  const int items = arguments.Number("items", 200);
  int applied = 0;
  for (int offset = 0; offset < items; ++offset) {
    const int order = offset % 10 == 9 ? offset - 5 : offset;  // every tenth is an old one again
    const std::string id = "order-" + std::to_string(order);
    auto lease = lock->Acquire(id, {.wait = Millis(60'000)});
    if (!lease && lease.error().code == "done") continue;
    if (!lease) {
      std::fprintf(stderr, "%s\n", lease.error().Line().c_str());
      return 75;
    }
    std::this_thread::sleep_for(Millis(arguments.Number("work-ms", 0)));
    if (!Apply(db, id, order * 100, lease->token())) return 1;
    lease->Done();  // only now; should it fail, the ledger still knows
    std::printf("applied %d\n", ++applied);
    std::fflush(stdout);
  }
  sqlite3_close(db);
}
