// What `cmake --install` brings: enough to build a user's program, by find_package and by
// pkg-config, and nothing of the service. And the lock library as a part of another build.
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/lock_store.h"
#include "tests/support/paths.h"

namespace fencepost::locking {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::LockStore;
using ::testing::Not;
using testing::TempDir;

constexpr const char* kUser = R"(#include <locking/locking.h>

#include <cstdio>

#ifdef ASIO_STANDALONE
#error "how the library is built is not its user's business"
#endif

int main(int, char** argv) {
  using namespace fencepost::locking;
  auto lock = QuorumLock::Connect({.redis = {.nodes = {argv[1]}}, .name_space = "user"});
  if (!lock || !(*lock)->WaitReady(Millis(20000))) return 1;
  auto lease = (*lock)->Acquire("name");
  auto two = AcquireMulti({{**lock, "a"}, {**lock, "b"}});
  ReentrantLock reentrant(**lock);
  Batch batch = AcquireFree(**lock, {"x", "y"});
  if (!lease || !two || !reentrant.Acquire("r", "me") || batch.leases.size() != 2) return 2;
  std::puts("held");
}
)";
constexpr const char* kProject = R"(cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(fencepost 0.9 CONFIG REQUIRED COMPONENTS locking)
add_executable(user user.cc)
target_link_libraries(user PRIVATE fencepost::locking)
add_library(plugin MODULE user.cc)
target_link_libraries(plugin PRIVATE fencepost::locking)
)";
// fencepost inside a project of its user, who has another standard and warnings of their own.
constexpr const char* kAround = R"(cmake_minimum_required(VERSION 3.25)
project(around LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 23)
add_subdirectory(${FENCEPOST} fencepost)
add_executable(user user.cc)
target_compile_options(user PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
target_link_libraries(user PRIVATE fencepost::locking)
)";

// The output of a command that must succeed.
std::string Must(const std::vector<std::string>& argv,
                 std::map<std::string, std::string> env = {}) {
  const auto finished = testing::RunToEnd({.argv = argv, .env = std::move(env)}, 300s);
  EXPECT_EQ(finished.exit_code, 0) << argv[0] << " " << argv[1] << "\n" << finished.output;
  return finished.output;
}

class Install : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string sanitize = testing::SanitizeFlags();
    if (!sanitize.empty()) GTEST_SKIP() << "a sanitized library is for our own tests";
  }
  TempDir folder_;
  const std::string build_ = testing::BuildPath();
};

TEST_F(Install, OfTheLockAloneServesUsersOfCMakeAndOfPkgConfig) {
  LockStore store(1);
  const std::string prefix = folder_.File("prefix");
  Must({"cmake", "--install", build_, "--component", "locking", "--prefix", prefix});
  EXPECT_FALSE(fs::exists(prefix + "/bin"));

  const std::string user = folder_.Write("user.cc", kUser);
  folder_.Write("CMakeLists.txt", kProject);
  Must({"cmake", "-S", folder_.path(), "-B", folder_.File("b"), "-DCMAKE_PREFIX_PATH=" + prefix});
  Must({"cmake", "--build", folder_.File("b")});
  EXPECT_EQ(Must({folder_.File("b/user"), store.list()}), "held\n");

  fs::path pc;
  for (const auto& entry : fs::recursive_directory_iterator(prefix)) {
    if (entry.path().extension() == ".pc") pc = entry.path().parent_path();
  }
  const std::string by_pc = folder_.File("by_pc");
  const std::string flags = Must({"pkg-config", "--cflags", "--libs", "fencepost-locking"},
                                 {{"PKG_CONFIG_PATH", pc.string()}});
  for (const char* foreign :
       {"-lrdkafka", "-lyaml", "-lprometheus", "-lpq", "-lcurl", "-lsqlite"}) {
    EXPECT_THAT(flags, Not(HasSubstr(foreign)));
  }
  EXPECT_THAT(flags, Not(HasSubstr("-std="))) << "it would stand after the user's own";
  Must({"sh", "-c",
        "g++ -std=c++20 -Wall -Wextra -Werror -o " + by_pc + " " + user + " " +
            flags.substr(0, flags.find('\n'))});
  EXPECT_EQ(Must({by_pc, store.list()}), "held\n");
}

TEST_F(Install, ShowsNothingOfTheServiceOrOfTheInsideInItsHeaders) {
  const std::string prefix = folder_.File("prefix");
  Must({"cmake", "--install", build_, "--component", "locking", "--prefix", prefix});
  static const std::regex kForeign("kafka|yaml|prometheus|asio|hiredis|openssl|libpq|sqlite",
                                   std::regex::icase);
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix + "/include")) {
    if (!entry.is_regular_file()) continue;
    ++headers;
    const std::string text = testing::ReadFile(entry.path().string());
    std::smatch found;
    const bool foreign = std::regex_search(text, found, kForeign);
    EXPECT_FALSE(foreign) << entry.path() << " speaks of " << found.str();
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("lock_loop")));
  }
  EXPECT_GE(headers, 16);
}

TEST_F(Install, IsNotNeededWhereFencepostIsASubdirectoryOfItsUsersBuild) {
  LockStore store(1);
  folder_.Write("user.cc", kUser);
  folder_.Write("CMakeLists.txt", kAround);
  const std::string build = folder_.File("b");
  const std::string inner = build + "/fencepost";
  const std::string said = Must({"cmake", "-S", folder_.path(), "-B", build, "-G", "Unix Makefiles",
                                 std::string("-DFENCEPOST=") + testing::SourcePath()});
  EXPECT_THAT(said, Not(HasSubstr("rdkafka")));
  const std::string targets = Must({"cmake", "--build", inner, "--target", "help"});
  EXPECT_THAT(targets, HasSubstr("fencepost_locking"));
  EXPECT_THAT(targets, Not(HasSubstr("fencepost_consumer")));
  EXPECT_THAT(targets, Not(HasSubstr("component_install")));

  // Of the library two files are compiled, a made one and one of hiredis; for the rest the archive
  // at hand stands in, which is of the same sources. ("/fast": what it depends on is not built.)
  Must({"make", "-C", inner, "generated/scripts.o", "locking/redis/wire.o"});
  fs::copy_file(build_ + "/libfencepost_locking.a", inner + "/libfencepost_locking.a");
  Must({"cmake", "--build", build, "--target", "user/fast"});
  EXPECT_EQ(Must({build + "/user", store.list()}), "held\n");
  Must({"cmake", "--install", build, "--prefix", folder_.File("prefix")});
  EXPECT_FALSE(fs::exists(folder_.File("prefix/include")));
}

TEST_F(Install, OfEverythingBringsTheProgram) {
  const std::string prefix = folder_.File("prefix");
  Must({"cmake", "--install", build_, "--prefix", prefix});
  EXPECT_THAT(Must({prefix + "/bin/fencepost", "version"}), HasSubstr("fencepost"));
}

// Configured only: what it would compile is compiled by the tests above.
TEST_F(Install, OfTheLockNeedsNoneOfTheServicesLibrariesToBeConfigured) {
  std::vector<std::string> argv = {
      "cmake", "-S", testing::SourcePath(), "-B", folder_.File("b"), "-DFENCEPOST_LOCKING_ONLY=ON"};
  for (const char* package : {"yaml-cpp", "prometheus-cpp", "SQLite3", "CURL", "simdjson", "spdlog",
                              "nlohmann_json", "ZLIB", "GTest"}) {
    argv.push_back(std::string("-DCMAKE_DISABLE_FIND_PACKAGE_") + package + "=ON");
  }
  const std::string said = Must(argv);
  EXPECT_THAT(said, Not(HasSubstr("rdkafka")));
  const std::string targets = Must({"cmake", "--build", folder_.File("b"), "--target", "help"});
  EXPECT_THAT(targets, HasSubstr("fencepost_locking"));
  EXPECT_THAT(targets, Not(HasSubstr("fencepost_consumer")));
}

}  // namespace
}  // namespace fencepost::locking
