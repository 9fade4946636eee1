#include "tests/bench/shared/machine.h"

#include <sys/utsname.h>

#include <cstdio>
#include <ctime>
#include <sstream>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include "tests/bench/shared/turns.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::bench {
namespace {

// The value of the first line "NAME…: VALUE" of a file in /proc.
std::string Field(const std::string& path, const std::string& name) {
  std::istringstream lines(testing::ReadFile(path));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string FirstLine(std::vector<std::string> argv) {
  const auto ended = testing::RunToEnd({.argv = std::move(argv)});
  return ended.output.substr(0, ended.output.find('\n'));
}

// What install_for_tests leaves out of the command: where jars and peers are.
std::string Command(int argc, const char* const* argv) {
  std::string command = "./dev bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--peer" || word == "--streams") {
      ++i;
    } else {
      command += " " + word;
    }
  }
  return command;
}

}  // namespace

void TellMachine(int argc, const char* const* argv) {
  utsname kernel{};
  uname(&kernel);
  const std::string memory = Field("/proc/meminfo", "MemTotal");
  const Json told = {
      {"bench", "run"},
      {"command", Command(argc, argv)},
      {"at", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))},
      {"version", FirstLine({testing::FencepostBinary(), "version"})},
      {"machine",
       {{"cpu", Field("/proc/cpuinfo", "model name")},
        {"cores", std::thread::hardware_concurrency()},
        {"memory_gib", memory.empty() ? 0 : std::stol(memory) >> 20},
        {"kernel", kernel.release}}},
      {"librdkafka", rd_kafka_version_str()},
      {"redis", FirstLine({"redis-server", "--version"})},
  };
  fmt::print("{}\n", told.dump());
  std::fflush(stdout);
}

}  // namespace fencepost::bench
