#include "consumer/outputs/postgres/postgres_connection.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/failure_text.h"
#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using std::chrono::seconds;

constexpr seconds kConnectLimit{15};
constexpr std::chrono::hours kLifted{7 * 24};

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
// Prepared: each part needs all of them.
constexpr const char* kRelease = "fencepost_release";
constexpr const char* kSavepoint = "fencepost_savepoint";
constexpr const char* kRollBackTo = "fencepost_rollback_to";

void IgnoreNotice(void* /*unused*/, const PGresult* /*notice*/) {}

// Parameters as libpq takes them.
struct ParamArrays {
  explicit ParamArrays(const std::vector<PgParam>& params) {
    for (const PgParam& param : params) {
      values.push_back(param.data);
      lengths.push_back(param.size);
      formats.push_back(param.binary ? 1 : 0);
    }
  }
  [[nodiscard]] int size() const { return static_cast<int>(values.size()); }
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace

std::string_view PgText(const PgResult& result, int row, int column) {
  return {PQgetvalue(result.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result.get(), row, column))};
}

PgConnection::PgConnection(std::string dsn, Secret password, std::string application_name)
    : dsn_(std::move(dsn)),
      password_(std::move(password)),
      application_name_(std::move(application_name)),
      where_("postgres") {}

PgConnection::~PgConnection() { Drop(); }

// The server sees the closed socket within a second (client_connection_check_interval) and gives
// the transaction up, or has committed it. PQcancel would hang here for as long as a server is
// frozen.
void PgConnection::Drop() {
  if (connection_ != nullptr) PQfinish(connection_);
  connection_ = nullptr;
}

void PgConnection::LiftLimits() { call_limit_ = kLifted; }

int PgConnection::server_version() const {
  return connection_ == nullptr ? 0 : PQserverVersion(connection_);
}

std::string PgConnection::Redacted(std::string text) const {
  for (const std::string& secret : secrets_) {
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3)) {
      text.replace(at, secret.size(), "***");
    }
  }
  return ErrorText(text);
}

// Shorter ones would be found inside of innocent words and tell more than they hide.
void PgConnection::AddSecret(std::string_view secret) {
  if (secret.size() < 3) return;
  if (std::ranges::find(secrets_, secret) != secrets_.end()) return;
  secrets_.emplace_back(secret);
  // One may be the beginning of another.
  std::ranges::sort(secrets_, std::greater(), [](const std::string& one) { return one.size(); });
}

PgFailure PgConnection::Dropped(PgFailure failure) {
  Drop();
  return failure;
}

PgFailure PgConnection::Broken() {
  // A line for each host, and hints below it.
  std::string said = connection_ == nullptr ? "" : PQerrorMessage(connection_);
  while (said.ends_with('\n')) said.pop_back();
  for (auto at = said.find('\n'); at != said.npos; at = said.find('\n', at + 2)) {
    said.replace(at, said.substr(at, 2) == "\n\t" ? 2 : 1, "; ");
  }
  std::string text = Redacted(std::move(said));
  if (text.empty()) text = "the connection was lost";
  return Dropped({PgFailure::Kind::kConnection, "", std::move(text)});
}

PgFailure PgConnection::ServerFailure(const PGresult* result, Sent sent) const {
  const auto field = [&](int code) {
    const char* text = PQresultErrorField(result, code);
    return std::string(text == nullptr ? "" : text);
  };
  PgFailure failure{PgFailure::Kind::kServer, field(PG_DIAG_SQLSTATE),
                    field(PG_DIAG_MESSAGE_PRIMARY)};
  // Without a state libpq made the error up itself: the connection broke.
  if (failure.sqlstate.empty()) {
    failure.kind = PgFailure::Kind::kConnection;
    failure.text = PQresultErrorMessage(result);
  }
  if (const std::string detail = field(PG_DIAG_MESSAGE_DETAIL); !detail.empty()) {
    failure.text += ": " + detail;
  }
  if (!failure.sqlstate.empty()) {
    failure.text += " (SQLSTATE " + failure.sqlstate + ")";
  }
  failure.text = Redacted(std::move(failure.text));
  failure.table = field(PG_DIAG_TABLE_NAME);
  if (sent == Sent::kRecords && !failure.sqlstate.empty()) {
    failure.shown = Redacted(WithoutRecord({.sqlstate = failure.sqlstate,
                                            .message = field(PG_DIAG_MESSAGE_PRIMARY),
                                            .context = field(PG_DIAG_CONTEXT),
                                            .schema = field(PG_DIAG_SCHEMA_NAME),
                                            .table = field(PG_DIAG_TABLE_NAME),
                                            .column = field(PG_DIAG_COLUMN_NAME),
                                            .constraint = field(PG_DIAG_CONSTRAINT_NAME),
                                            .datatype = field(PG_DIAG_DATATYPE_NAME)}));
  }
  return failure;
}

tl::expected<void, PgFailure> PgConnection::WaitFor(short events, Clock::time_point deadline) {
  for (;;) {
    if (stop_.stopped()) {
      return tl::unexpected(
          Dropped({PgFailure::Kind::kInterrupted, "", "interrupted for shutdown"}));
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      return tl::unexpected(
          Dropped({PgFailure::Kind::kTimeout, "", "no answer from the server in time"}));
    }
    std::array<pollfd, 2> fds{
        {{PQsocket(connection_), events, 0}, {stop_.fd(), static_cast<short>(POLLIN), 0}}};
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(left) + 1);
    if (ready < 0 && errno != EINTR) return tl::unexpected(Broken());
    if (ready > 0 && fds[0].revents != 0) return {};
  }
}

tl::expected<void, PgFailure> PgConnection::Connect() {
  Drop();
  if (stop_.stopped())
    return tl::unexpected(PgFailure{PgFailure::Kind::kInterrupted, "", "interrupted"});
  if (const auto problem = ProblemOfDsn(dsn_)) {
    return tl::unexpected(PgFailure{PgFailure::Kind::kDsn, "", "the dsn: " + problem->what});
  }
  const auto password = password_.Read();
  if (!password) {
    return tl::unexpected(PgFailure{PgFailure::Kind::kConnection, "",
                                    "output.postgres.password: " + password.error()});
  }
  secrets_.clear();
  AddSecret(*password);
  for (const DsnPart& part : PartsOfDsn(dsn_)) {
    if (part.secret) AddSecret(part.value);
  }
  // What is before dbname gives way to the dsn, what follows it does not (but for what is empty).
  const std::array keywords{"fallback_application_name",
                            "keepalives_idle",
                            "keepalives_interval",
                            "keepalives_count",
                            "tcp_user_timeout",
                            "target_session_attrs",
                            "dbname",
                            "password",
                            "client_encoding",
                            static_cast<const char*>(nullptr)};
  const std::array values{application_name_.c_str(),
                          "10",
                          "5",
                          "3",
                          "10000",
                          "read-write",
                          dsn_.c_str(),
                          password->c_str(),
                          "UTF8",
                          static_cast<const char*>(nullptr)};
  connection_ = PQconnectStartParams(keywords.data(), values.data(), /*expand_dbname=*/1);
  FENCEPOST_CHECK(connection_ != nullptr, "out of memory");
  PQsetNoticeReceiver(connection_, &IgnoreNotice, nullptr);
  if (auto done = Handshake(Clock::now() + kConnectLimit); !done) return done;
  return SetUpSession();
}

tl::expected<void, PgFailure> PgConnection::Handshake(Clock::time_point deadline) {
  const auto name = [](const char* text) { return std::string_view(text == nullptr ? "" : text); };
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING;;) {
    if (PQstatus(connection_) == CONNECTION_BAD || next == PGRES_POLLING_FAILED) break;
    // Of this host: a passfile, PGPASSWORD or a service may give it.
    AddSecret(name(PQpass(connection_)));
    where_ = fmt::format("{}:{}/{}", name(PQhost(connection_)), name(PQport(connection_)),
                         name(PQdb(connection_)));
    if (next == PGRES_POLLING_OK) {
      if (PQsetnonblocking(connection_, 1) != 0) break;
      return {};
    }
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (auto ready = WaitFor(events, deadline); !ready) return ready;
    next = PQconnectPoll(connection_);
  }
  return tl::unexpected(Broken());
}

tl::expected<void, PgFailure> PgConnection::SetUpSession() {
  if (auto done = Query(sql::postgres_session); !done) return tl::unexpected(Dropped(done.error()));
  // Newer servers can do more about a client that is gone or frozen in the middle of sending.
  std::vector<const char*> more;
  if (server_version() >= 140000) more.push_back("SET client_connection_check_interval = '1s'");
  if (call_limit_ == kLifted) {
    more.push_back("SET statement_timeout = 0");
  } else if (server_version() >= 170000) {
    more.push_back("SET transaction_timeout = '28s'");
  }
  for (const char* setting : more) {
    const auto done = Query(setting);  // not every platform has it, and nothing depends on it
    if (!done && done.error().kind != PgFailure::Kind::kServer) return tl::unexpected(done.error());
  }
  const std::array words{std::pair(kRelease, "RELEASE fencepost"),
                         std::pair(kSavepoint, "SAVEPOINT fencepost"),
                         std::pair(kRollBackTo, "ROLLBACK TO fencepost")};
  for (const auto& [name, sql] : words) {
    if (auto done = PrepareStatement(name, sql, {}); !done) return done;
  }
  return {};
}

tl::expected<PgResult, PgFailure> PgConnection::Query(const char* sql,
                                                      const std::vector<std::string>& params) {
  if (!open()) return tl::unexpected(Broken());
  std::vector<const char*> values;
  for (const std::string& param : params) values.push_back(param.c_str());
  const int sent = params.empty()
                       ? PQsendQuery(connection_, sql)
                       : PQsendQueryParams(connection_, sql, static_cast<int>(values.size()),
                                           nullptr, values.data(), nullptr, nullptr, 0);
  if (sent == 0) return tl::unexpected(Broken());
  return LastAnswer();
}

tl::expected<PgResult, PgFailure> PgConnection::QueryOnce(const std::string& sql,
                                                          const std::vector<PgParam>& params) {
  if (!open()) return tl::unexpected(Broken());
  const ParamArrays arrays(params);
  if (PQsendQueryParams(connection_, sql.c_str(), arrays.size(), nullptr, arrays.values.data(),
                        arrays.lengths.data(), arrays.formats.data(), 0) == 0) {
    return tl::unexpected(Broken());
  }
  return LastAnswer(Sent::kRecords);
}

tl::expected<PgResult, PgFailure> PgConnection::LastAnswer(Sent sent) {
  auto results = Answers(false, sent);
  if (!results) return tl::unexpected(results.error());
  if (results->empty()) return tl::unexpected(Broken());
  return std::move(results->back());
}

tl::expected<std::vector<Oid>, PgFailure> PgConnection::ParameterTypes(const char* name) {
  if (!open() || PQsendDescribePrepared(connection_, name) == 0) return tl::unexpected(Broken());
  const auto described = LastAnswer();
  if (!described) return tl::unexpected(described.error());
  std::vector<Oid> types;
  for (int i = 0; i < PQnparams(described->get()); ++i) {
    types.push_back(PQparamtype(described->get(), i));
  }
  return types;
}

tl::expected<void, PgFailure> PgConnection::PrepareStatement(const char* name,
                                                             const std::string& sql,
                                                             const std::vector<Oid>& types) {
  if (!open()) return tl::unexpected(Broken());
  if (PQsendPrepare(connection_, name, sql.c_str(), static_cast<int>(types.size()), types.data()) ==
      0) {
    return tl::unexpected(Broken());
  }
  if (auto results = Answers(false, Sent::kNames); !results) {
    return tl::unexpected(results.error());
  }
  return {};
}

bool PgConnection::SendWords(const char* sql) {
  return PQsendQueryParams(connection_, sql, 0, nullptr, nullptr, nullptr, nullptr, 0) != 0;
}

bool PgConnection::SendStep(const Step& step) {
  const ParamArrays arrays(step.params);
  return PQsendQueryPrepared(connection_, step.statement, arrays.size(), arrays.values.data(),
                             arrays.lengths.data(), arrays.formats.data(), 0) != 0;
}

// libpq keeps what is under 8 KiB until the flush, so all that follows the first statement's arrays
// leaves in the same send as their tail: a client that freezes here has either sent COMMIT too, or
// the server has not begun the first statement and holds no locks. (Of several statements with
// large arrays the server may have begun one: EndFrozen.)
tl::expected<std::vector<PgResult>, PgFailure> PgConnection::InOneGo(const char* before,
                                                                     const std::vector<Step>& steps,
                                                                     const Words& behind) {
  if (!open()) return tl::unexpected(Broken());
  const bool sent = PQenterPipelineMode(connection_) != 0 &&
                    (before == nullptr || SendWords(before)) &&
                    std::ranges::all_of(steps, [&](const Step& step) { return SendStep(step); }) &&
                    std::ranges::all_of(behind, [&](const char* sql) { return SendWords(sql); }) &&
                    PQpipelineSync(connection_) != 0;
  if (!sent) return tl::unexpected(Broken());
  auto answers = Answers(true, Sent::kRecords);
  if (!open()) return answers;
  if (PQexitPipelineMode(connection_) == 0) return tl::unexpected(Broken());
  if (!answers) {
    if (auto undone = RollBack(); !undone) return tl::unexpected(undone.error());
    return answers;
  }
  const std::size_t words = behind.size() + (before == nullptr ? 0 : 1);
  // A COMMIT that rolled back is no error to the protocol.
  const std::string_view last = behind.end()[-1];
  if (answers->size() != steps.size() + words ||
      PQcmdStatus(answers->back().get()) != last.substr(0, last.find(' '))) {
    return tl::unexpected(
        Dropped({PgFailure::Kind::kConnection, "", fmt::format("{} was not acknowledged", last)}));
  }
  if (before != nullptr) answers->erase(answers->begin());
  answers->resize(steps.size());
  return answers;
}

tl::expected<std::vector<PgResult>, PgFailure> PgConnection::Transact(
    const std::vector<Step>& steps) {
  return InOneGo(kBegin, steps, {"COMMIT"});
}

tl::expected<std::vector<PgResult>, PgFailure> PgConnection::BeginApart(
    const std::vector<Step>& steps) {
  return InOneGo(kBegin, steps, {"SET CONSTRAINTS ALL IMMEDIATE", "SAVEPOINT fencepost"});
}

tl::expected<void, PgFailure> PgConnection::CommitApart(const std::vector<Step>& steps) {
  const auto answers = InOneGo(nullptr, steps, {"COMMIT"});
  if (!answers) return tl::unexpected(answers.error());
  return {};
}

// After a part that went well the savepoint is behind it, else it is still before it: rolling back
// to it is right in both cases, and nobody has to look before the next part is sent.
tl::expected<PgConnection::Parts, PgFailure> PgConnection::SendParts(std::size_t parts,
                                                                     const PartSteps& part) {
  if (!open()) return tl::unexpected(Broken());
  bool sent = PQenterPipelineMode(connection_) != 0;
  std::vector<std::size_t> counts(parts + 1, 0);  // of its steps
  for (std::size_t i = 0; i < parts && sent; ++i) {
    const std::vector<Step> steps = part(i);
    counts[i] = steps.size();
    sent = std::ranges::all_of(steps, [&](const Step& step) { return SendStep(step); }) &&
           SendStep({kRelease, {}}) && SendStep({kSavepoint, {}}) &&
           PQpipelineSync(connection_) != 0 && SendStep({kRollBackTo, {}});
  }
  if (!sent || PQpipelineSync(connection_) == 0) return tl::unexpected(Broken());
  Parts answered;
  for (std::size_t i = 0; i <= parts; ++i) {
    auto answers = Answers(true, Sent::kRecords);
    if (!open()) return tl::unexpected(answers.error());
    if (answers) {
      if (i > 0) answers->erase(answers->begin());  // of ROLLBACK TO
      answers->resize(counts[i]);
    }
    answered.push_back(std::move(answers));
  }
  if (PQexitPipelineMode(connection_) == 0) return tl::unexpected(Broken());
  if (!answered.back()) return tl::unexpected(std::move(answered.back().error()));
  answered.pop_back();
  return answered;
}

tl::expected<void, PgFailure> PgConnection::RollBack() {
  if (PQtransactionStatus(connection_) == PQTRANS_IDLE) return {};
  auto undone = Query("ROLLBACK");
  if (!undone) return tl::unexpected(Dropped(undone.error()));
  return {};
}

tl::expected<std::vector<PgResult>, PgFailure> PgConnection::Answers(bool pipeline, Sent sent) {
  const auto deadline = Clock::now() + call_limit_;
  std::vector<PgResult> results;
  std::optional<PgFailure> failure;
  for (;;) {
    const int unsent = PQflush(connection_);
    if (unsent < 0) return tl::unexpected(Broken());
    if (PQisBusy(connection_) != 0) {
      const short events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
      if (auto ready = WaitFor(events, deadline); !ready) return tl::unexpected(ready.error());
      if (PQconsumeInput(connection_) == 0)
        return tl::unexpected(failure ? Dropped(*failure) : Broken());
      continue;
    }
    PgResult result(PQgetResult(connection_));
    const bool bad = PQstatus(connection_) == CONNECTION_BAD;
    if (!result) {
      if (bad) return tl::unexpected(failure ? Dropped(*failure) : Broken());
      if (!pipeline) break;  // in a pipeline: the end of one statement's answers
      continue;
    }
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
      if (!failure) {
        failure = ServerFailure(result.get(), sent);
        failure->answered = results.size();
      }
    } else if (status != PGRES_PIPELINE_ABORTED) {
      results.push_back(std::move(result));
    }
    if (bad) return tl::unexpected(failure ? Dropped(*failure) : Broken());
  }
  if (failure) {
    if (failure->kind != PgFailure::Kind::kServer) Drop();
    return tl::unexpected(*failure);
  }
  return results;
}

}  // namespace fencepost::consumer
