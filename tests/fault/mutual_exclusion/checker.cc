#include "tests/fault/mutual_exclusion/checker.h"

#include <chrono>
#include <stdexcept>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::torture {
namespace {

constexpr int kCannotBeHad = 3;  // of fetch-linearizability
constexpr int kUndecided = 4;    // of the program
constexpr std::chrono::minutes kPatience{5};

struct Program {
  std::string path;
  std::string why_not;
};

const Program& TheProgram() {
  static const Program program = [] {
    auto built =
        testing::RunToEnd({.argv = {testing::SourcePath("tests/support/fetch-linearizability")},
                           .separate_stderr = true},
                          kPatience);
    if (built.exit_code == kCannotBeHad) return Program{.path = "", .why_not = built.error_output};
    if (built.exit_code != 0) throw std::runtime_error(built.error_output);
    built.output.erase(built.output.find_last_not_of('\n') + 1);
    return Program{.path = built.output, .why_not = ""};
  }();
  return program;
}

}  // namespace

const std::string& WhyNotChecked() { return TheProgram().why_not; }

Checked CheckHistory(const std::string& path) {
  const auto said = testing::RunToEnd({.argv = {TheProgram().path, path}}, kPatience);
  switch (said.exit_code) {
    case 0:
      return {Verdict::kLinearizable, said.output};
    case 1:
      return {Verdict::kNotLinearizable, said.output};
    case kUndecided:
      return {Verdict::kNotDecided, said.output};
    default:
      throw std::runtime_error(said.output);
  }
}

}  // namespace fencepost::torture
