// The PostgreSQL output: one transaction a batch, sent in one go.
#include <arpa/inet.h>
#include <endian.h>

#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/postgres_connection.h"
#include "consumer/outputs/postgres_schema.h"
#include "locking/check.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kWriteStatement = "fencepost_write";
constexpr const char* kRestStatement = "fencepost_rest";
// A message of the protocol ends at 1 GiB, and the server holds several copies of it.
constexpr std::size_t kMostBytes = 64u << 20;

// A one-dimensional array in PostgreSQL's binary format: dimensions, has-null flag, element type,
// length, lower bound; then each element as length (-1: NULL) and bytes; all big-endian.
class BinaryArray {
 public:
  void Begin(Oid element, std::size_t length) {
    bytes_.clear();
    PutInt32(1);
    PutInt32(1);  // there may be NULLs
    PutInt32(static_cast<std::uint32_t>(element));
    PutInt32(static_cast<std::uint32_t>(length));
    PutInt32(1);
  }
  void Add(std::optional<std::string_view> element) {
    if (!element) return PutInt32(0xffffffffu);
    PutInt32(static_cast<std::uint32_t>(element->size()));
    bytes_.append(*element);
  }
  void Add(std::uint64_t element) {
    PutInt32(8);
    const std::uint64_t big = htobe64(element);
    char raw[sizeof big];
    std::memcpy(raw, &big, sizeof big);
    bytes_.append(raw, sizeof raw);
  }
  [[nodiscard]] PgParam Param() const {
    return {.data = bytes_.data(), .size = static_cast<int>(bytes_.size()), .binary = true};
  }

 private:
  void PutInt32(std::uint32_t value) {
    const std::uint32_t big = htonl(value);
    char raw[sizeof big];
    std::memcpy(raw, &big, sizeof big);
    bytes_.append(raw, sizeof raw);
  }
  std::string bytes_;
};

template <typename Int>
Int Number(std::string_view text) {
  Int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class PostgresOutput final : public Output {
 public:
  PostgresOutput(const PostgresOptions& options, std::string pipeline, std::string worker)
      : options_(options),
        pipeline_(std::move(pipeline)),
        worker_(std::move(worker)),
        connection_(options.dsn, fmt::format("fencepost/{}/{}", pipeline_, worker_)),
        rows_(options.columns, worker_) {}

  tl::expected<void, OutputError> Prepare() override;
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  tl::expected<std::size_t, OutputError> Prune(std::chrono::seconds keep,
                                               std::size_t limit) override;
  void Interrupt() override { connection_.Interrupt(); }

 private:
  using Outcomes = std::vector<WriteOutcome>;

  // Rows [begin, end) of rows_; what the server refuses for one record's sake is halved down to it.
  tl::expected<void, OutputError> WriteRange(std::size_t begin, std::size_t end,
                                             Outcomes& outcomes);
  tl::expected<std::vector<PgResult>, PgFailure> Transaction(std::size_t begin, std::size_t end);
  tl::expected<void, OutputError> Judge(const std::vector<PgResult>& answers, std::size_t begin,
                                        std::size_t end, Outcomes& outcomes);
  // The next call connects anew and reads the catalog again: the operator may have mended the
  // schema.
  OutputError Fail(const PgFailure& failure);

  const PostgresOptions options_;
  const std::string pipeline_;
  const std::string worker_;
  PgConnection connection_;
  BatchRows rows_;
  PgTarget target_;
  std::vector<BinaryArray> arrays_;
};

OutputError PostgresOutput::Fail(const PgFailure& failure) {
  if (!WorthRetryingAtOnce(failure)) connection_.Drop();
  return ToOutputError(failure, connection_.where());
}

tl::expected<void, OutputError> PostgresOutput::Prepare() {
  if (auto connected = connection_.Connect(); !connected) {
    return tl::unexpected(Fail(connected.error()));
  }
  auto target = LearnTarget(connection_, options_);
  if (!target) {
    connection_.Drop();
    return tl::unexpected(target.error());
  }
  target_ = std::move(*target);
  arrays_.resize(4 + target_.columns.size());
  auto prepared = connection_.PrepareStatement(kWriteStatement, WriteSql(target_, options_.columns),
                                               WriteTypes(target_));
  if (prepared)
    prepared = connection_.PrepareStatement(kRestStatement, RestSql(target_), {kTextOid});
  if (!prepared) return tl::unexpected(Fail(prepared.error()));
  return {};
}

tl::expected<std::vector<WriteOutcome>, OutputError> PostgresOutput::Write(
    const WriteRequest& request) {
  const std::vector<WriteItem>& items = request.items;
  Outcomes outcomes(items.size());
  rows_.Fill(items, outcomes);
  if (rows_.size() == 0) return outcomes;
  if (!connection_.open()) {
    if (auto prepared = Prepare(); !prepared) return tl::unexpected(prepared.error());
  }
  if (auto done = WriteRange(0, rows_.size(), outcomes); !done) return tl::unexpected(done.error());
  return outcomes;
}

tl::expected<void, OutputError> PostgresOutput::WriteRange(std::size_t begin, std::size_t end,
                                                           Outcomes& outcomes) {
  std::size_t bytes = 0;
  for (std::size_t row = begin; row < end; ++row) bytes += rows_.bytes(row);
  const bool one = end - begin == 1;
  if (one || bytes <= kMostBytes) {
    const auto answers = Transaction(begin, end);
    if (answers) return Judge(*answers, begin, end, outcomes);
    if (!RefusesRecord(answers.error())) return tl::unexpected(Fail(answers.error()));
    if (one) {
      outcomes[rows_.index(begin)] = {WriteResult::kBadRecord, answers.error().text};
      return {};
    }
  }
  const std::size_t middle = begin + (end - begin) / 2;
  if (auto first = WriteRange(begin, middle, outcomes); !first) return first;
  return WriteRange(middle, end, outcomes);
}

tl::expected<std::vector<PgResult>, PgFailure> PostgresOutput::Transaction(std::size_t begin,
                                                                           std::size_t end) {
  const std::size_t length = end - begin;
  arrays_[0].Begin(kTextOid, length);
  arrays_[1].Begin(kInt8Oid, length);
  arrays_[2].Begin(kTextOid, length);
  arrays_[3].Begin(kInt8Oid, length);
  for (std::size_t row = begin; row < end; ++row) {
    const WriteItem& item = rows_.item(row);
    arrays_[0].Add(item.record_id);
    arrays_[1].Add(item.token.value());
    arrays_[2].Add(rows_.source(row));
    arrays_[3].Add(std::uint64_t{item.crc});
  }
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    BinaryArray& array = arrays_[4 + column];
    array.Begin(target_.columns[column].bytes() ? kBytesOid : kTextOid, length);
    for (std::size_t row = begin; row < end; ++row) array.Add(rows_.cell(row, column));
  }
  const PgParam pipeline{.data = pipeline_.c_str()};
  PgConnection::Step write{kWriteStatement, {pipeline, {.data = worker_.c_str()}}};
  for (const BinaryArray& array : arrays_) write.params.push_back(array.Param());
  return connection_.Transact({write, {kRestStatement, {pipeline}}});
}

tl::expected<void, OutputError> PostgresOutput::Judge(const std::vector<PgResult>& answers,
                                                      std::size_t begin, std::size_t end,
                                                      Outcomes& outcomes) {
  const PgResult& rest = answers[1];
  const auto inserted = Number<std::size_t>(PgText(answers[0], 0, 0));
  const auto others = static_cast<std::size_t>(PQntuples(rest.get()));
  const auto unclear = [&](std::string what, std::string hint) {
    return tl::unexpected(OutputError{.error = {.code = "output_retry",
                                                .what = std::move(what),
                                                .where = connection_.where(),
                                                .hint = std::move(hint)}});
  };
  if (inserted + others != end - begin) {
    return unclear(fmt::format("{} rows were written, and the ledger took {} and knew {}",
                               end - begin, inserted, others),
                   "does a trigger or rule change the ledger's rows?");
  }
  for (int r = 0; r < PQntuples(rest.get()); ++r) {
    const auto row = rows_.Find(PgText(rest, r, 0), begin, end);
    // Pruned or forgotten between the two statements. The others are committed; written again, they
    // are found as our own.
    if (!row || PQgetisnull(rest.get(), r, 1) != 0) {
      return unclear(fmt::format("the ledger row of {} went away meanwhile", PgText(rest, r, 0)),
                     "");
    }
    outcomes[rows_.index(*row)] =
        Classify({.token = Number<std::uint64_t>(PgText(rest, r, 1)),
                  .source = PgText(rest, r, 2),
                  .content_crc = Number<std::int64_t>(PgText(rest, r, 3))},
                 rows_.item(*row), rows_.source(*row));
  }
  return {};
}

tl::expected<std::size_t, OutputError> PostgresOutput::Prune(std::chrono::seconds keep,
                                                             std::size_t limit) {
  if (!connection_.open()) {
    if (auto prepared = Prepare(); !prepared) return tl::unexpected(prepared.error());
  }
  const auto pruned = connection_.Query(
      PruneSql(target_).c_str(), {pipeline_, std::to_string(keep.count()), std::to_string(limit)});
  if (!pruned) return tl::unexpected(Fail(pruned.error()));
  return Number<std::size_t>(PQcmdTuples(pruned->get()));
}

}  // namespace

std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker) {
  return std::make_unique<PostgresOutput>(options, std::move(pipeline), std::move(worker));
}

}  // namespace fencepost::consumer
