#include "consumer/cli/shared/ledger_view.h"

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

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

// Interrupts the output when the limit is over before this object goes.
class Limit {
 public:
  Limit(Output& output, Millis limit)
      : thread_([this, &output, limit](const std::stop_token& ended) {
          std::unique_lock lock(mutex_);
          changed_.wait_for(lock, ended, limit, [] { return false; });
          over_ = !ended.stop_requested();
          if (over_) output.Interrupt();
        }) {}

  // Whether the limit was over first.
  bool End() {
    thread_.request_stop();
    thread_.join();
    return over_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool over_ = false;  // read after the thread's end
  std::jthread thread_;
};

constexpr std::string_view kMissing = "ledger_missing";

template <typename Answer>
tl::expected<Answer, Error> Within(Output& output, Millis limit, auto ask) {
  Limit timer(output, limit);
  auto answer = tl::expected<Answer, OutputError>(ask()).map_error(
      [](OutputError failure) { return std::move(failure.error); });
  const bool over = timer.End();
  if (!answer && over) {
    answer.error().what = fmt::format("no answer within {} s", limit.count() / 1000);
  }
  return answer;
}

}  // namespace

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
  std::error_code ignored;
  if (sqlite_path_.empty() || std::filesystem::exists(sqlite_path_, ignored)) return std::nullopt;
  return Error{"output_missing", "there is no such file", sqlite_path_, ""};
}

template <typename Answer>
tl::expected<Answer, Error> LedgerView::Ask(Millis limit, Answer without_ledger, auto ask) {
  if (auto missing = Missing()) return tl::unexpected(std::move(*missing));
  auto answer = Within<Answer>(*output_, limit, ask);
  if (answer) return answer;
  if (answer.error().code == kMissing) return without_ledger;
  answer.error().hint.clear();  // it is meant for a worker, whose batches wait
  return answer;
}

tl::expected<LedgerView::Rows, Error> LedgerView::Lookup(const std::vector<std::string>& ids,
                                                         Millis limit) {
  return Ask(limit, Rows(ids.size()), [&] { return output_->Lookup(ids); });
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
