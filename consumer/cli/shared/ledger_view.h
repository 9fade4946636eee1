// The database of a pipeline as a command sees it: checked as a worker would at its start, rows of
// the ledger looked up and deleted, no effects written and nothing created. One thread; every call
// blocks, and ends within its limit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

inline constexpr std::string_view kOutputMissing = "output_missing";
// Of LedgerView::Check: all is good but for the ledger or tables, which a worker makes.
bool IsMadeAtTheStart(const Error& error);

class LedgerView {
 public:
  // nullptr: this output has no ledger (kafka, file, stdout).
  static std::unique_ptr<LedgerView> Of(const consumer::PipelineOptions& options);

  // Whether a worker could write: the login, the table, its columns and their types, rights, the
  // ledger. Error IsMadeAtTheStart, or kOutputMissing: SQLite's file is not there.
  tl::expected<void, Error> Check(consumer::Millis limit);
  // Of what Check found (Output::Advice).
  [[nodiscard]] std::vector<std::string> Advice() const { return output_->Advice(); }
  // Whether the record's row has a newer change (Output::HasNewer).
  tl::expected<bool, Error> HasNewer(const consumer::WriteItem& item, consumer::Millis limit);
  using Rows = std::vector<std::optional<consumer::LedgerEntry>>;
  // In the order of the ids (as stored); a ledger that is not there has none. Error: the database
  // cannot be asked, and why. After a failure every further call fails too.
  tl::expected<Rows, Error> Lookup(const std::vector<std::string>& ids, consumer::Millis limit);
  // How many rows there were.
  tl::expected<std::size_t, Error> Forget(const std::vector<std::string>& ids,
                                          consumer::Millis limit);

  // By position (Output::ForgetOffsets).
  tl::expected<std::size_t, Error> ForgetOffsets(const consumer::PositionId& first,
                                                 consumer::Offset last, consumer::Millis limit);

 private:
  explicit LedgerView(const consumer::PipelineOptions& options);
  [[nodiscard]] std::optional<Error> Missing() const;
  template <typename Answer>
  tl::expected<Answer, Error> Ask(consumer::Millis limit, Answer without_ledger, auto ask);

  const std::string sqlite_path_;  // empty: not SQLite
  std::unique_ptr<consumer::Output> output_;
};

// "PostgreSQL", "MySQL", "SQLite", "Kafka", "a file", "standard output".
std::string_view OutputName(const consumer::OutputOptions& output);

}  // namespace fencepost::cli
