// What the outputs with a ledger share: the ledger's tables, and which rows may be pruned. No
// database here; any thread.
//
// The ledger holds one row for each record id whose effect is written, put there in the transaction
// of the effect. Its primary key is what makes the effect happen once. Where ids are positions it
// is another table, with one row a partition: the ranges of the offsets that are done, changed in
// the transaction of their effects; the row's lock is what makes each effect happen once. A dead
// letter's offset is done, too; beside it the first table has a row of its id with the token 0, so
// that it can be replayed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/row_rules.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

inline constexpr std::string_view kLedgerTable = "fencepost_ledger";
inline constexpr std::string_view kPositionsTable = "fencepost_positions";

struct LedgerColumn {
  std::string_view name;
  std::string_view postgres;  // its type there
};
// What a ledger is made of, in all databases.
struct LedgerTable {
  std::string_view name;
  std::span<const LedgerColumn> columns;
  std::string_view key;      // the columns of the primary key
  bool updates = false;      // its rows are changed
  std::string_view written;  // SQL: for this row something was written
  // What makes it.
  const char* postgres = nullptr;
  const char* mysql = nullptr;
  const char* sqlite = nullptr;
};
const LedgerTable& TableOfLedger(bool by_position);

// What it means that there is no ledger.
enum class MissingLedger : std::uint8_t {
  kCreate,
  kGone,  // it was there at an earlier connect: a new one would let every effect happen again
  kTell,  // OutputTerms::look_only
};
// Codes for who only looks: what is not there yet, and is made at a worker's start.
inline constexpr std::string_view kLedgerMissing = "ledger_missing";
inline constexpr std::string_view kTablesMissing = "tables_missing";  // the ledger is there
// What an output asks of its database when it learns what is there.
struct LedgerTerms {
  std::string pipeline;
  bool exactly_once = false;  // as in OutputTerms
  bool by_position = false;   // likewise
  MissingLedger missing = MissingLedger::kCreate;
};

// A row by position holds no range list that can be read. Taken for empty, every effect would
// happen again; so it is waited for.
OutputError InvalidRanges(std::string where);
// `ddl`: the file that makes one; empty: a worker always may.
OutputError LedgerMissing(std::string_view table, const std::string& where, std::string_view ddl);
OutputError LedgerGone(std::string_view table, std::string where);
// The other ledger than the one that is read has rows of the pipeline, of another record_id, and
// this one has none yet. Nobody reads them, and what they have as done would be done again.
OutputError OtherRowsLeft(std::string_view pipeline, std::string where, bool by_position);

// A table as the pipeline file names it: NAME or SCHEMA.NAME, case as written; a part in double
// quotes or backticks may hold a dot (a doubled quote is one). One or two parts; the error is one
// line.
tl::expected<std::vector<std::string>, std::string> SplitTableName(std::string_view table);
// The same for people and for the SQL of hints: quoted where its letters need it.
std::string TableInWords(const std::vector<std::string>& parts, char quote = '"');

// --- pruning ---

// Rows that one call of Output::Prune looks at: those that must stay may be many.
inline constexpr std::size_t kPruneWindow = 10'000;

// Whether `scope` lets go of a row of this source (topic/partition/offset), its age apart. A source
// of any other form stays.
bool MayPrune(const PruneScope& scope, std::string_view source);

// The wall clock, but a step forward does not move it: what has become old since the start has
// become so by CLOCK_BOOTTIME, too. Else a host whose clock jumps a month ahead would forget all.
class PruneClock {
 public:
  explicit PruneClock(locking::Now start) : start_(start) {}
  [[nodiscard]] locking::WallTime At(locking::Now now) const;

 private:
  locking::Now start_;
};

}  // namespace fencepost::consumer
