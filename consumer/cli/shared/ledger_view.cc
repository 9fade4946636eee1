#include "consumer/cli/shared/ledger_view.h"

#include <future>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::cli {

using consumer::Finality;
using consumer::Millis;
using consumer::Output;
using consumer::OutputError;
using consumer::PipelineOptions;
using consumer::PostgresOptions;
using consumer::SqliteOptions;

namespace {

// On a thread of its own, so that this one can interrupt it.
template <typename Answer>
tl::expected<Answer, Error> Within(Output& output, Millis limit, auto ask) {
  std::future<tl::expected<Answer, OutputError>> asked = std::async(std::launch::async, ask);
  const bool over = asked.wait_for(limit) == std::future_status::timeout;
  if (over) output.Interrupt();
  auto answer = asked.get().map_error([](OutputError failure) { return std::move(failure.error); });
  if (!answer && over) {
    answer.error().what = fmt::format("no answer within {} s", limit.count() / 1000);
  }
  return answer;
}

}  // namespace

bool IsMadeAtTheStart(const Error& error) {
  return error.code == consumer::kLedgerMissing || error.code == consumer::kTablesMissing;
}

LedgerView::LedgerView(const PipelineOptions& options)
    : sqlite_path_(std::holds_alternative<SqliteOptions>(options.output)
                       ? std::get<SqliteOptions>(options.output).path
                       : ""),
      output_(consumer::MakeOutput(options, "fencepost-cli", nullptr, true)) {}

std::unique_ptr<LedgerView> LedgerView::Of(const PipelineOptions& options) {
  if (FinalityOf(options.output) != Finality::kLedger) return nullptr;
  return std::unique_ptr<LedgerView>(new LedgerView(options));
}

// To look must not create a database.
std::optional<Error> LedgerView::Missing() const {
  if (sqlite_path_.empty() || !consumer::SqliteFileIsMissing(sqlite_path_)) return std::nullopt;
  return Error{std::string(kOutputMissing), "there is no such file", sqlite_path_, ""};
}

template <typename Answer>
tl::expected<Answer, Error> LedgerView::Ask(Millis limit, Answer without_ledger, auto ask) {
  if (auto missing = Missing()) return tl::unexpected(std::move(*missing));
  auto answer = Within<Answer>(*output_, limit, ask);
  if (answer) return answer;
  if (answer.error().code == consumer::kLedgerMissing) return without_ledger;
  answer.error().hint.clear();  // it is meant for a worker, whose batches wait
  return answer;
}

tl::expected<LedgerView::Rows, Error> LedgerView::Lookup(const std::vector<std::string>& ids,
                                                         Millis limit) {
  return Ask(limit, Rows(ids.size()), [&] { return output_->Lookup(ids); });
}

tl::expected<bool, Error> LedgerView::HasNewer(const consumer::WriteItem& item, Millis limit) {
  return Ask(limit, false, [&] { return output_->HasNewer(item); });
}

tl::expected<std::size_t, Error> LedgerView::Forget(const std::vector<std::string>& ids,
                                                    Millis limit) {
  return Ask(limit, std::size_t{0}, [&] { return output_->Forget(ids); });
}

tl::expected<std::size_t, Error> LedgerView::ForgetOffsets(const consumer::PositionId& first,
                                                           consumer::Offset last, Millis limit) {
  return Ask(limit, std::size_t{0}, [&] { return output_->ForgetOffsets(first, last); });
}

tl::expected<void, Error> LedgerView::Check(Millis limit) {
  if (auto missing = Missing()) return tl::unexpected(std::move(*missing));
  return Within<void>(*output_, limit, [&] { return output_->Prepare(); });
}

std::string_view OutputName(const consumer::OutputOptions& output) {
  if (std::holds_alternative<PostgresOptions>(output)) return "PostgreSQL";
  if (std::holds_alternative<consumer::MysqlOptions>(output)) return "MySQL";
  if (std::holds_alternative<SqliteOptions>(output)) return "SQLite";
  if (std::holds_alternative<consumer::KafkaOutputOptions>(output)) return "Kafka";
  if (std::holds_alternative<consumer::FileOptions>(output)) return "a file";
  return "standard output";
}

}  // namespace fencepost::cli
