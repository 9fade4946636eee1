// The rooms of the house: each folder of shipped sources, and the folders that it may include. They
// stand from the ground up, and a room includes only rooms above it in this table, so that there is
// no circle. A new arrow is a decision: it is written here, or it is not made.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tidy/source_tree.h"

namespace fencepost::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kMaxFiles = 20;  // sources of one folder

struct Room {
  std::string_view folder;
  std::vector<std::string_view> includes;
  std::size_t lines;  // at most; more of them is a line in DECISIONS.md
};

const std::vector<Room>& Rooms() {
  static const std::vector<Room> rooms = {
      Room{"locking/base", {}, 900},
      Room{"locking/core", {"locking/base"}, 380},
      Room{"locking/core/store", {"locking/base", "locking/core"}, 1580},
      Room{"locking/core/contact", {"locking/base"}, 260},
      Room{"locking/core/lock",
           {"locking/base", "locking/core", "locking/core/store", "locking/core/contact"},
           2300},
      Room{"locking/redis", {"locking/base", "locking/core", "locking/core/store"}, 700},
      Room{"locking/redis/session",
           {"locking/base", "locking/core", "locking/core/store", "locking/redis"},
           1660},
      Room{"locking/redis/node",
           {"locking/base", "locking/core", "locking/core/store", "locking/redis",
            "locking/redis/session"},
           1000},
      Room{"locking/redis/wake", {"locking/core", "locking/redis", "locking/redis/session"}, 210},
      Room{"locking/redis/engine",
           {"locking/base", "locking/core", "locking/core/lock", "locking/redis",
            "locking/redis/session", "locking/redis/node", "locking/redis/wake"},
           400},
      Room{"locking/redis/tools",
           {"locking/base", "locking/redis", "locking/redis/session", "locking/redis/engine"},
           180},
      Room{"locking/quorum_lock",
           {"locking/base", "locking/core", "locking/core/store", "locking/core/lock",
            "locking/redis", "locking/redis/engine"},
           1340},
      Room{"locking/recipes", {"locking/base", "locking/quorum_lock"}, 1060},
      Room{"locking", {"locking/base", "locking/quorum_lock", "locking/recipes"}, 20},
      Room{"consumer/json", {"locking/base"}, 1090},
      Room{"consumer/record", {"locking/base", "consumer/json"}, 1450},
      Room{"consumer/decode", {"consumer/json", "locking/base", "consumer/record"}, 1490},
      Room{"consumer/trace", {"consumer/record"}, 220},
      Room{"consumer/pipeline",
           {"locking/base", "locking/core", "locking/redis", "consumer/record", "consumer/trace"},
           1990},
      Room{"consumer/flow/ports",
           {"locking/base", "consumer/record", "consumer/trace", "consumer/pipeline"},
           400},
      Room{"consumer/flow/state",
           {"locking/base", "consumer/record", "consumer/trace", "consumer/pipeline",
            "consumer/flow/ports"},
           1900},
      Room{"consumer/flow",
           {"locking/base", "locking/core/lock", "consumer/record", "consumer/trace",
            "consumer/pipeline", "consumer/flow/ports", "consumer/flow/state"},
           3580},
      Room{"consumer/handlers",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/flow/ports",
            "consumer/json"},
           1010},
      Room{"consumer/handlers/jq",
           {"consumer/json", "locking/base", "consumer/record", "consumer/handlers"},
           540},
      Room{"consumer/handlers/http",
           {"consumer/json", "locking/base", "consumer/record", "consumer/trace",
            "consumer/pipeline", "consumer/handlers", "consumer/handlers/jq"},
           2650},
      Room{"consumer/aws",
           {"locking/base", "consumer/json", "consumer/record", "consumer/handlers/http"},
           690},
      Room{"consumer/kafka/client",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/aws",
            "consumer/handlers/http", "consumer/json"},
           2510},
      Room{"consumer/fleet",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/handlers/http",
            "consumer/kafka/client"},
           830},
      Room{"consumer/kafka/log_identity",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/kafka/client"},
           960},
      Room{"consumer/kafka/source",
           {"locking/core", "locking/base", "consumer/record", "consumer/decode",
            "consumer/pipeline", "consumer/flow/ports", "consumer/kafka/client",
            "consumer/kafka/log_identity"},
           2870},
      Room{"consumer/decode/registry",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/decode",
            "consumer/handlers/http"},
           710},
      Room{"consumer/handlers/exec",
           {"consumer/json", "locking/base", "consumer/record", "consumer/trace",
            "consumer/handlers"},
           1200},
      Room{"consumer/outputs",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/flow/ports",
            "consumer/kafka/log_identity"},
           1440},
      Room{"consumer/outputs/rows",
           {"consumer/json", "locking/base", "consumer/record", "consumer/trace",
            "consumer/pipeline", "consumer/decode", "consumer/outputs"},
           2850},
      Room{"consumer/encode",
           {"consumer/json", "locking/base", "consumer/record", "consumer/pipeline",
            "consumer/decode", "consumer/decode/registry", "consumer/outputs/rows"},
           1090},
      Room{"consumer/outputs/ledger",
           {"locking/base", "consumer/record", "consumer/kafka/log_identity", "consumer/flow/ports",
            "consumer/outputs", "consumer/outputs/rows"},
           3560},
      Room{"consumer/outputs/tables",
           {"consumer/json", "locking/base", "consumer/record", "consumer/pipeline",
            "consumer/outputs", "consumer/outputs/rows", "consumer/outputs/ledger"},
           1290},
      Room{"consumer/outputs/postgres",
           {"consumer/json", "locking/base", "consumer/pipeline", "consumer/outputs",
            "consumer/outputs/rows", "consumer/outputs/ledger", "consumer/outputs/tables",
            "consumer/record"},
           3440},
      Room{"consumer/outputs/mysql",
           {"locking/base", "consumer/pipeline", "consumer/outputs", "consumer/outputs/rows",
            "consumer/outputs/ledger", "consumer/outputs/tables", "consumer/json",
            "consumer/record"},
           1710},
      Room{"consumer/outputs/sqlite",
           {"locking/base", "consumer/pipeline", "consumer/outputs", "consumer/outputs/rows",
            "consumer/outputs/ledger", "consumer/outputs/tables", "consumer/json"},
           1360},
      Room{"consumer/outputs/file",
           {"consumer/json", "locking/base", "consumer/record", "consumer/pipeline",
            "consumer/outputs", "consumer/outputs/rows"},
           490},
      Room{"consumer/kafka/output",
           {"locking/base", "consumer/record", "consumer/trace", "consumer/pipeline",
            "consumer/encode", "consumer/kafka/client", "consumer/kafka/source", "consumer/outputs",
            "consumer/outputs/rows"},
           1970},
      Room{"consumer/worker",
           {"locking/base",
            "locking/core",
            "locking/core/store",
            "locking/core/lock",
            "locking/redis",
            "locking/redis/engine",
            "consumer/record",
            "consumer/pipeline",
            "consumer/flow",
            "consumer/decode/registry",
            "consumer/kafka/client",
            "consumer/kafka/log_identity",
            "consumer/kafka/source",
            "consumer/handlers",
            "consumer/handlers/http",
            "consumer/handlers/exec",
            "consumer/handlers/jq",
            "consumer/outputs",
            "consumer/outputs/postgres",
            "consumer/outputs/mysql",
            "consumer/outputs/sqlite",
            "consumer/kafka/output"},
           1770},
      Room{"consumer/testing",
           {"locking/base", "locking/core/lock", "consumer/record", "consumer/pipeline",
            "consumer/handlers", "consumer/handlers/http", "consumer/outputs",
            "consumer/outputs/rows", "consumer/outputs/ledger", "consumer/worker",
            "consumer/handlers/exec", "consumer/json", "consumer/kafka/output"},
           1940},
      Room{"config/text", {"locking/base"}, 680},
      Room{"config/schema",
           {"locking/base", "locking/redis", "consumer/pipeline", "config/text",
            "consumer/outputs/ledger", "consumer/aws"},
           2490},
      Room{"config/read",
           {"consumer/json", "locking/base", "consumer/record", "consumer/pipeline", "config/text",
            "config/schema", "consumer/outputs/ledger"},
           1720},
      Room{"config/lint",
           {"locking/core", "locking/redis", "consumer/pipeline", "consumer/kafka/client",
            "consumer/outputs/postgres", "config/text", "config/read", "config/schema",
            "consumer/outputs/ledger", "consumer/outputs/tables", "consumer/handlers/http",
            "consumer/record"},
           1860},
      Room{"config",
           {"locking/base", "consumer/pipeline", "config/text", "config/read", "config/lint"},
           250},
      Room{"metrics/log",
           {"locking/base", "locking/core", "consumer/trace", "consumer/pipeline"},
           520},
      Room{"metrics",
           {"locking/base", "locking/core", "consumer/record", "consumer/trace",
            "consumer/pipeline", "metrics/log"},
           1440},
      Room{"metrics/status",
           {"locking/base", "consumer/pipeline", "consumer/fleet", "metrics/log", "metrics"},
           1570},
      Room{"metrics/traces",
           {"locking/base", "consumer/record", "consumer/trace", "consumer/pipeline",
            "consumer/handlers/http", "metrics/log", "metrics"},
           1210},
      Room{"metrics/http",
           {"locking/base", "locking/core", "consumer/pipeline", "metrics", "metrics/status"},
           1430},
      Room{"consumer/cli/shared",
           {"consumer/json", "locking/base", "locking/core", "locking/core/lock", "locking/redis",
            "locking/redis/engine", "consumer/record", "consumer/pipeline", "consumer/outputs",
            "consumer/outputs/ledger", "consumer/outputs/sqlite", "consumer/worker", "config/text",
            "config", "config/schema"},
           1240},
      Room{"consumer/cli/local",
           {"locking/base", "consumer/kafka/client", "consumer/handlers/exec"},
           280},
      Room{"consumer/cli/demo",
           {"locking/base", "consumer/kafka/client", "consumer/fleet", "consumer/outputs/postgres",
            "consumer/cli/local", "consumer/cli/shared"},
           1230},
      Room{"consumer/cli/dlq",
           {"consumer/json", "locking/base", "consumer/record", "consumer/pipeline",
            "consumer/kafka/client", "consumer/outputs", "consumer/cli/shared",
            "consumer/decode/registry", "consumer/decode", "consumer/worker"},
           1760},
      Room{"consumer/cli/explain",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/kafka/client",
            "consumer/fleet", "consumer/kafka/output", "consumer/kafka/log_identity",
            "consumer/decode/registry", "consumer/outputs", "consumer/outputs/rows",
            "consumer/cli/shared", "consumer/cli/dlq", "consumer/flow/ports"},
           1700},
      Room{"consumer/cli/lint",
           {"consumer/pipeline", "consumer/kafka/client", "consumer/decode/registry",
            "consumer/encode", "config", "consumer/cli/shared", "config/text"},
           570},
      Room{"consumer/cli/lock_exec",
           {"locking/base", "locking/quorum_lock", "consumer/cli/shared"},
           860},
      Room{"consumer/cli/locks",
           {"locking/redis/tools", "consumer/record", "consumer/cli/shared"},
           560},
      Room{"consumer/cli/run",
           {"locking/base", "consumer/record", "consumer/pipeline", "consumer/handlers/exec",
            "consumer/kafka/client", "consumer/fleet", "consumer/worker", "config/text",
            "config/schema", "metrics", "metrics/http", "metrics/log", "metrics/status",
            "metrics/traces", "consumer/cli/shared"},
           1050},
      Room{"consumer/cli/dev",
           {"consumer/json", "locking/base", "consumer/record", "consumer/pipeline",
            "consumer/flow/ports", "consumer/outputs/rows", "consumer/kafka/client",
            "consumer/kafka/output", "consumer/worker", "consumer/testing", "consumer/cli/local",
            "consumer/cli/shared", "consumer/cli/run"},
           1250},
      Room{"consumer/cli/tables",
           {"locking/base", "consumer/json", "consumer/pipeline", "consumer/kafka/client",
            "consumer/decode", "consumer/decode/registry", "consumer/outputs/rows",
            "consumer/outputs/tables", "consumer/worker", "consumer/cli/shared"},
           550},
      Room{"consumer/cli/top",
           {"locking/base", "consumer/record", "consumer/fleet", "consumer/cli/shared"},
           280},
      Room{"consumer/cli",
           {"locking/base", "locking/core/lock", "locking/redis/engine", "consumer/record",
            "consumer/kafka/client", "consumer/fleet", "consumer/decode/registry",
            "consumer/testing", "consumer/worker", "config/text", "config/schema", "config",
            "consumer/cli/shared"},
           1130},
  };
  return rooms;
}

std::string_view FolderOf(std::string_view path) {
  return path.substr(0, std::min(path.rfind('/'), path.size()));
}

bool IsShipped(const SourceFile& file) {
  return IsSource(file) && !Under(file, "tests") && !Under(file, "locking/examples") &&
         !Under(file, "consumer/examples");
}

Complaints RoomsIncludeWhatTheTableSays(const SourceFile& file) {
  Complaints complaints;
  if (!IsShipped(file)) return complaints;
  const std::string_view folder = FolderOf(file.path);
  const auto room = std::ranges::find(Rooms(), folder, &Room::folder);
  if (room == Rooms().end()) {
    return {Complaint(file, 1, fmt::format("{} is no room of rooms_test.cc", folder))};
  }
  for (const Include& include : Includes(file)) {
    const std::string_view target = FolderOf(include.target);
    if (!include.ours || target == folder || target == include.target) continue;
    if (std::ranges::find(room->includes, target) == room->includes.end()) {
      complaints.push_back(
          Complaint(file, include.line, fmt::format("{} must not include {}", folder, target)));
    }
  }
  return complaints;
}

TEST(Rooms, IncludeOnlyWhatTheirRowNames) {
  EXPECT_THAT(Check(RoomsIncludeWhatTheTableSays), IsEmpty());
}

// What comes replaces something: a folder that needs more lines says so in DECISIONS.md.
TEST(Rooms, KeepWithinTheirLines) {
  std::map<std::string, std::size_t> lines;
  for (const SourceFile& file : AllFiles()) {
    if (IsShipped(file)) lines[std::string(FolderOf(file.path))] += Lines(file.text).size();
  }
  for (const Room& room : Rooms())
    EXPECT_LE(lines[std::string(room.folder)], room.lines) << room.folder;
}

TEST(Rooms, StandOnRoomsBelowThemSoThatThereIsNoCircle) {
  std::set<std::string_view> below;
  for (const Room& room : Rooms()) {
    for (const std::string_view included : room.includes) {
      EXPECT_TRUE(below.contains(included)) << room.folder << " includes " << included;
    }
    EXPECT_TRUE(below.insert(room.folder).second) << room.folder << " stands here twice";
  }
}

// Turned round, an arrow of the table is found wherever a file makes it.
TEST(Rooms, AreMissedWhenAnyArrowOfTheTableIsTurnedRound) {
  for (const Room& room : Rooms()) {
    for (const std::string_view included : room.includes) {
      const SourceFile turned{fmt::format("{}/a.h", included),
                              fmt::format("#include \"{}/b.h\"\n", room.folder)};
      EXPECT_THAT(RoomsIncludeWhatTheTableSays(turned),
                  ElementsAre(fmt::format("{}/a.h:1: {} must not include {}", included, included,
                                          room.folder)));
    }
  }
}

TEST(Rooms, AreMissedWhenAFolderIsNotInTheTable) {
  EXPECT_THAT(RoomsIncludeWhatTheTableSays({"consumer/cellar/a.h", ""}),
              ElementsAre("consumer/cellar/a.h:1: consumer/cellar is no room of rooms_test.cc"));
}

// Every row and every arrow of it is in use: the table shows the house as it is.
TEST(Rooms, AreAllThere) {
  std::map<std::string_view, std::set<std::string>> made;
  const std::vector<SourceFile> files = AllFiles();
  for (const SourceFile& file : files) {
    if (!IsShipped(file)) continue;
    auto& includes = made[FolderOf(file.path)];
    for (const Include& include : Includes(file)) {
      if (include.ours) includes.emplace(FolderOf(include.target));
    }
  }
  for (const Room& room : Rooms()) {
    ASSERT_TRUE(made.contains(room.folder)) << room.folder;
    for (const std::string_view included : room.includes) {
      EXPECT_TRUE(made[room.folder].contains(std::string(included)))
          << room.folder << " does not include " << included;
    }
  }
}

TEST(Rooms, HoldWhatOneCanKeepInMind) {
  std::map<std::string, std::size_t> sources;
  for (const SourceFile& file : AllFiles()) {
    if (IsShipped(file)) ++sources[std::string(FolderOf(file.path))];
  }
  for (const auto& [folder, count] : sources) {
    EXPECT_LE(count, kMaxFiles) << folder << ": split it along a concept";
  }
}

}  // namespace
}  // namespace fencepost::tidy
