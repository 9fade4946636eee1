// The statements of the files consumer/outputs/sql/NAME.sql, each by its name, without their
// comments. {ledger} is the ledger of a target (ForLedger in postgres_sql.h).
#pragma once

namespace fencepost::consumer::sql {

// The ledger's tables. Those of the first two databases are those of deploy/*/ledger.sql, too.
extern const char* const postgres_ledger;
extern const char* const postgres_positions;
extern const char* const mysql_ledger;
extern const char* const mysql_positions;
extern const char* const sqlite_ledger;
extern const char* const sqlite_positions;

extern const char* const postgres_session;
extern const char* const postgres_relation;
extern const char* const postgres_columns;
extern const char* const postgres_unique;
extern const char* const postgres_type;
extern const char* const postgres_walk;
extern const char* const postgres_replace;
extern const char* const postgres_lookup;
extern const char* const postgres_forget;
extern const char* const postgres_prune;
extern const char* const postgres_known_positions;
extern const char* const postgres_write_positions;
extern const char* const postgres_insert_positions;
extern const char* const postgres_lock_positions;
extern const char* const postgres_reopen_positions;
extern const char* const postgres_add_letters;
extern const char* const postgres_read_positions;
extern const char* const postgres_take_back_positions;
extern const char* const postgres_end_frozen;

}  // namespace fencepost::consumer::sql
