// The cells of the matrix: each fault begins once in each phase of a worker, and nothing is lost,
// doubled, or out of order. Storms: one fault after the other, each in a phase, over one ledger.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/fault/matrix/faults.h"
#include "tests/fault/matrix/phases.h"

namespace fencepost::matrix {

struct MatrixOptions {
  int rounds = 1;
  std::string kind;   // the fault of that name, else those whose names contain it
  std::string phase;  // the one, or all
  std::optional<DatabaseKind> database{};  // what all write to; none: faults of one to that, others
                                           // to PostgreSQL
  std::optional<Pipeline> pipeline{};  // of all; none: by id, where the fault can happen to that
  int storm = 0;      // instead, a storm of so many faults in each round, drawn by its seed
  bool once = false;  // each fault in one phase alone, by turns: another one with the next seed
  std::uint64_t seed = 1;  // of the first cell; each further one has the next
  std::string from;        // FAULT/PHASE where it begins; the seeds are as without it
};

struct Cell {
  std::vector<const Fault*> faults;  // one, else a storm draws of them
  std::optional<Phase> phase;        // of a storm: none
  std::string name;                  // FAULT/PHASE
  std::uint64_t seed = 1;
  DatabaseKind database = DatabaseKind::kPostgres;  // what is written to
  Pipeline pipeline = Pipeline::kId;
  int storm = 0;

  // By what its records are told apart, and where they take effect.
  [[nodiscard]] std::string Target() const;
};

// What is asked for, in the order in which it runs. Throws std::invalid_argument with what to do
// where an option chooses nothing.
std::vector<Cell> Plan(const MatrixOptions& options);

struct CellResult {
  Cell cell;
  std::map<std::string, int> found;   // by the audit: testing::Audit::counts
  std::map<std::string, int> counts;  // what happened
  std::size_t nodes = 0;
  int records = 0;
  int effects = 0;
  int repeated_calls = 0;
  double seconds = 0;
  std::string trouble;  // "": it went well; else all that is known

  [[nodiscard]] std::string Line() const;
};

// On servers that are reset first. Never throws.
CellResult RunCell(System& system, const Cell& cell);

// A line for each cell, the troubles on stderr, a sum at the end. 0 when all went well.
int RunMatrix(const std::vector<Cell>& cells);

}  // namespace fencepost::matrix
