// One connection to PostgreSQL, non-blocking underneath: every call has a time limit, and Interrupt
// ends it from another thread, even when the server is frozen. Apart from Interrupt, one thread.
#pragma once

#include <charconv>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <libpq-fe.h>
#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "locking/base/secret.h"
#include "locking/base/wake_up.h"

namespace fencepost::consumer {

struct PgResultDeleter {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, PgResultDeleter>;

std::string_view PgText(const PgResult& result, int row, int column);  // "" for NULL
inline bool PgBool(const PgResult& result, int row, int column) {
  return PgText(result, row, column) == "t";
}

template <typename Int>
Int PgNumber(std::string_view text) {
  Int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}
// A prepared statement's name, by what it does: where a pooler hands this session to others in
// between, it is missed, and none of theirs is taken for it.
std::string PgStatementName(std::string_view name, const std::string& sql);

// What went wrong, in one line of at most kMaxErrorText bytes, without the secrets of the dsn and
// the password that is in use.
struct PgFailure {
  enum class Kind : std::uint8_t {
    kServer,       // the server answered with an error: see sqlstate
    kConnection,   // not connected, or the connection broke: what was sent may or may not be done
    kTimeout,      // no answer in time: likewise
    kInterrupted,  // Interrupt was called: likewise
    kDsn,          // the connection string cannot be used
  };
  Kind kind = Kind::kServer;
  std::string sqlstate;
  std::string text;          // may hold parts of a record: for its dead letter
  std::string shown{};       // nothing of any record; empty: nor has `text`
  std::size_t answered = 0;  // kServer: statements of the transaction that went well before it
  std::string table{};       // of the server
  [[nodiscard]] const std::string& Shown() const { return shown.empty() ? text : shown; }
};

// What PostgreSQL tells about an error; empty: nothing.
struct PgErrorFields {
  std::string sqlstate;
  std::string message;
  std::string context;
  std::string schema;
  std::string table;
  std::string column;
  std::string constraint;
  std::string datatype;
};

// The same without anything of a record: the beginning of PostgreSQL's own message or, where a
// function or an extension wrote the message, the condition's name; and the names of what refused.
// Never the DETAIL, which holds whole rows.
std::string WithoutRecord(const PgErrorFields& fields);

// What it says about the records of a transaction.
WriteFailure FailureOf(const PgFailure& failure);
// Deadlock or serialization: nothing was written, and the same again may well succeed.
bool WorthRetryingAtOnce(const PgFailure& failure);
OutputError ToOutputError(const PgFailure& failure, std::string where);
// Another has written a row of the ledger since it was read, or a trigger drops those of ours.
bool IsOfLedger(const PgFailure& failure);
// Where a key of a table refuses: its columns, and the row's values as PostgreSQL writes them, of
// "Key (id, no)=(7, 1) already exists": "7, 1) already exists".
struct QuotedKey {
  std::vector<std::string> columns;
  std::string_view values;  // of the refusal's detail
};
std::optional<QuotedKey> KeyIn(const OutputError& refusal);
// PostgreSQL's words hold this cell.
bool Quotes(const OutputError& refusal, std::string_view cell);

// One parameter of a statement; `size` counts for binary ones only.
struct PgParam {
  const char* data = nullptr;  // nullptr: NULL
  int size = 0;
  bool binary = false;
};

class PgConnection {
 public:
  // The password is instead of one in the dsn; empty: there is none, or the dsn gives it.
  PgConnection(std::string dsn, Secret password, std::string application_name);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  [[nodiscard]] bool open() const { return connection_ != nullptr; }
  [[nodiscard]] const std::string& where() const { return where_; }  // HOST:PORT/DATABASE
  [[nodiscard]] int server_version() const;

  // From the next Connect on a statement may take days, as one that changes a large table.
  void LiftLimits();
  // Drops what there was, connects, and sets the session up.
  tl::expected<void, PgFailure> Connect();
  void Drop();

  // One statement (or several without parameters), outside of a pipeline; text parameters.
  tl::expected<PgResult, PgFailure> Query(const char* sql,
                                          const std::vector<std::string>& params = {});
  // One statement, planned for this one time: for what must not keep a plan that was made while a
  // table was small.
  tl::expected<PgResult, PgFailure> QueryOnce(const std::string& sql,
                                              const std::vector<PgParam>& params);
  tl::expected<void, PgFailure> PrepareStatement(const char* name, const std::string& sql,
                                                 const std::vector<Oid>& types);
  // Of a prepared statement, in the order of its parameters.
  tl::expected<std::vector<Oid>, PgFailure> ParameterTypes(const char* name);

  // A transaction in one go: BEGIN, the named statements, COMMIT; answers of the named statements
  // in order, only if COMMIT was acknowledged. After a failure of the kind kServer the transaction
  // is rolled back and the connection good; after any other the connection was dropped.
  struct Step {
    const char* statement = nullptr;
    std::vector<PgParam> params;
  };
  tl::expected<std::vector<PgResult>, PgFailure> Transact(const std::vector<Step>& steps);
  // The same, of which RollBack or CommitApart is the end. In between each part stands behind a
  // savepoint, and all are sent in one go; of each its failure, of the kind kServer, after which it
  // was rolled back, or nullopt. Deferred constraints are checked with each part.
  tl::expected<std::vector<PgResult>, PgFailure> BeginApart(const std::vector<Step>& steps);
  using PartSteps = std::function<std::vector<Step>(std::size_t)>;
  using Parts = std::vector<tl::expected<std::vector<PgResult>, PgFailure>>;  // of its steps
  tl::expected<Parts, PgFailure> SendParts(std::size_t parts, const PartSteps& part);
  tl::expected<void, PgFailure> CommitApart(const std::vector<Step>& steps);
  tl::expected<void, PgFailure> RollBack();

  // Any thread. For shutdown: every call from then on fails at once.
  void Interrupt() { stop_.Stop(); }
  [[nodiscard]] bool interrupted() const { return stop_.stopped(); }

 private:
  using Clock = std::chrono::steady_clock;

  void AddSecret(std::string_view secret);
  tl::expected<void, PgFailure> Handshake(Clock::time_point deadline);
  tl::expected<void, PgFailure> SetUpSession();
  bool SendWords(const char* sql);
  bool SendStep(const Step& step);
  // The steps, with these words before and behind them.
  using Words = std::initializer_list<const char*>;
  tl::expected<std::vector<PgResult>, PgFailure> InOneGo(const char* before,
                                                         const std::vector<Step>& steps,
                                                         const Words& behind);
  // Records: parts of records were sent, so that what the server says may quote them.
  enum class Sent : std::uint8_t { kNames, kRecords };
  tl::expected<std::vector<PgResult>, PgFailure> Answers(bool pipeline, Sent sent);
  tl::expected<PgResult, PgFailure> LastAnswer(Sent sent = Sent::kNames);
  tl::expected<void, PgFailure> WaitFor(short events, Clock::time_point deadline);
  PgFailure Broken();  // describes, and drops the connection
  PgFailure Dropped(PgFailure failure);
  PgFailure ServerFailure(const PGresult* result, Sent sent) const;
  [[nodiscard]] std::string Redacted(std::string text) const;

  std::string dsn_;
  Secret password_;
  std::string application_name_;
  std::string where_;
  std::vector<std::string> secrets_;     // what no text may show
  std::chrono::seconds call_limit_{30};  // above statement_timeout: its error is the clearer one
  StopSwitch stop_;
  PGconn* connection_ = nullptr;
};

}  // namespace fencepost::consumer
