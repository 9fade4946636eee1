// A target without libFuzzer, for the ordinary build: `fuzz_TARGET FOLDER` runs every input of
// FOLDER/corpus and FOLDER/found, then changes of them by a seed (FENCEPOST_SEED; else always the
// same). `fuzz_TARGET FILE` runs that input alone. A run that aborts leaves its input in a file.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kChanged = 4000;  // inputs, whatever the number of seeds
constexpr std::size_t kMostBytes = 4096;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Seeds(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* const kind : {"corpus", "found"}) {
    if (!fs::exists(folder / kind)) continue;
    for (const auto& entry : fs::directory_iterator(folder / kind)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> seeds;
  for (const fs::path& file : files) seeds.push_back(ReadFile(file));
  return seeds;
}

// What has a meaning in the formats that are parsed here.
constexpr std::array<std::string_view, 40> kBits{
    "{",       "}",      "[",   "]",      "\"",   "'",        "\\",       "\\u0000",
    "\\ud800", ",",      ":",   ": ",     "- ",   "\n",       "\r\n",     "\t",
    " ",       "~",      "/",   "?",      "#",    "=",        "@",        "%",
    "${",      "&a ",    "*a",  "!!str ", "|\n",  "null",     "true",     "-1",
    "010",     "1e9999", "0.1", "\x7f",   "\xff", "\xc3\xa9", "\xc2\x9b", "99999999999999999999"};

std::string Changed(std::string text, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.erase(at, 1 + below(20));
        break;
      case 3:
        text.insert(at, kBits[below(kBits.size())]);
        break;
      case 4:
        if (!other.empty()) text.insert(at, other.substr(below(other.size()), 1 + below(40)));
        break;
      case 5:
        if (at < text.size()) text.insert(at, text.substr(below(text.size()), 1 + below(40)));
        break;
      default:
        text.insert(at, 1, static_cast<char>(random()));
        break;
    }
  }
  return text.substr(0, kMostBytes);
}

std::string_view g_input;  // what runs now
std::string g_left;        // the file that it is left in

void LeaveInput(int signal) {
  const int file = open(g_left.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
  const bool left = file >= 0 && write(file, g_input.data(), g_input.size()) >= 0;
  constexpr std::string_view kWords = "the input is in ";
  if (left && write(STDERR_FILENO, kWords.data(), kWords.size()) > 0 &&
      write(STDERR_FILENO, g_left.data(), g_left.size()) > 0 && write(STDERR_FILENO, "\n", 1) > 0) {
    close(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(std::string_view input) {
  g_input = input;
  OneInput(input);
}

int Main(const std::string& program, const fs::path& what) {
  g_left = program + ".failed";
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) {
    std::signal(signal, LeaveInput);
  }
  if (fs::is_regular_file(what)) {
    Run(ReadFile(what));
    return 0;
  }
  const std::vector<std::string> seeds = Seeds(what);
  FENCEPOST_CHECK(!seeds.empty(), what.string() + "/corpus is empty");
  Run("");
  for (const std::string& seed : seeds) Run(seed);
  const char* const given = std::getenv("FENCEPOST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  for (int i = 0; i < kChanged; ++i) {
    const auto pick = [&]() -> const std::string& { return seeds[random() % seeds.size()]; };
    Run(Changed(pick(), pick(), random));
  }
  std::printf("%zu inputs, and %d changes of them by seed %llu\n", seeds.size(), kChanged,
              static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace
}  // namespace fencepost::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "%s FOLDER | FILE\n", argv[0]);
    return 2;
  }
  return fencepost::fuzz::Main(argv[0], argv[1]);
}
