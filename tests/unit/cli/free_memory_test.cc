// What was freed does not count as the process' memory for ever.
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "consumer/cli/run/free_memory.h"

namespace fencepost::cli {
namespace {

double ResidentMiB() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Between two pieces that stay: no end of an arena could be cut off.
TEST(FreeMemory, IsReturnedToTheSystem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  constexpr std::size_t kPieces = 32'768;
  constexpr std::size_t kPiece = 2'000;  // 62 MiB in all
  constexpr std::size_t kKept = 64;      // each so-manieth stays
  std::vector<std::unique_ptr<char[]>> pieces(kPieces);
  std::thread([&] {  // in an arena of its own
    for (auto& piece : pieces) {
      piece = std::make_unique<char[]>(kPiece);
      piece[0] = 1;
    }
  })
      .join();
  for (std::size_t i = 0; i < kPieces; ++i) {
    if (i % kKept != 0) pieces[i].reset();
  }
  const double before = ResidentMiB();
  ReturnFreeMemory();
  EXPECT_LT(ResidentMiB(), before - 40);
}

}  // namespace
}  // namespace fencepost::cli
