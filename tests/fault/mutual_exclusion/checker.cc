#include "tests/fault/mutual_exclusion/checker.h"

#include <chrono>
#include <stdexcept>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::torture {
namespace {

constexpr int kCannotBeHad = 3;  // of fetch-linearizability
constexpr std::chrono::minutes kPatience{5};

}  // namespace

Checked CheckHistory(const std::string& path) {
  auto built =
      testing::RunToEnd({.argv = {testing::SourcePath("tests/support/fetch-linearizability")},
                         .separate_stderr = true},
                        kPatience);
  if (built.exit_code == kCannotBeHad) return {Verdict::kNotChecked, built.error_output};
  if (built.exit_code != 0) throw std::runtime_error(built.error_output);
  std::string& program = built.output;
  program.erase(program.find_last_not_of('\n') + 1);
  const auto said = testing::RunToEnd({.argv = {program, path}}, kPatience);
  if (said.exit_code == 0) return {Verdict::kLinearizable, said.output};
  if (said.exit_code == 1) return {Verdict::kNotLinearizable, said.output};
  throw std::runtime_error(said.output);
}

}  // namespace fencepost::torture
