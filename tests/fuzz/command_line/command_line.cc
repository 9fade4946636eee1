// The command line: one word a line. It is parsed as a program's is, and nothing is carried out.
// Each word is also taken as what options take.
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/text/scalar.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/cli/shared/position.h"
#include "locking/base/time_text.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace cli;

void CheckWord(const std::string& word) {
  if (const auto position = ParsePosition(word)) {
    FENCEPOST_CHECK(ParsePosition(position->Text()) == position, Shown(word));
  }
  constexpr locking::WallTime kNow{std::chrono::milliseconds(1'700'000'000'000)};
  if (const auto moment = ParseRfc3339(word)) {
    FENCEPOST_CHECK(ParseMoment(word, kNow) == *moment, Shown(word));
    const std::string text = MomentText(*moment);
    // The offset may lead out of the years that the form has.
    const auto again = ParseRfc3339(text);
    FENCEPOST_CHECK(again == moment || text.size() != 24, Shown(word) + " " + text);
  }
  if (const auto moment = ParseMoment(word, kNow)) {
    FENCEPOST_CHECK(!AgeText(*moment, kNow).empty(), Shown(word));
  }
  if (const auto duration = config::ParseDuration(word)) {
    const std::string text = config::DurationText(*duration);
    FENCEPOST_CHECK(config::ParseDuration(text) == duration, Shown(word));
    FENCEPOST_CHECK(!SpanText(*duration).empty(), Shown(word));
  }
}

// 0, or the exit code of what is wrong.
int Parse(const std::vector<std::string>& words) {
  CLI::App app{"", "fencepost"};
  app.require_subcommand(1);
  Run run;
  const std::vector<std::string> command_words = {"true"};
  AddCommands(app, run, command_words);
  std::vector<const char*> argv = {"fencepost"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    return app.exit(error, out, err);
  }
  FENCEPOST_CHECK(run != nullptr, "nothing to carry out");
  return 0;
}

}  // namespace

void OneInput(std::string_view input) {
  Parts parts(input);
  std::vector<std::string> words;
  while (!parts.empty() && words.size() < 20) {
    std::string word(parts.Line());
    std::erase(word, '\0');  // the system passes none
    words.push_back(std::move(word));
  }
  for (const std::string& word : words) CheckWord(word);
  Parse(words);
}

}  // namespace fencepost::fuzz
