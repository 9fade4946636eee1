// What the file output has on the disk when it answers. The program has an fdatasync of its own, in
// place of the C library's, which looks on.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

#include <gmock/gmock.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/process.h"

namespace {

struct Syncs {
  std::mutex mutex;
  std::map<ino_t, off_t> synced;  // how much of a file is on the disk
  int fail = 0;                   // so many of the next fail
};

Syncs& TheSyncs() {
  static Syncs syncs;
  return syncs;
}

}  // namespace

extern "C" int fdatasync(int fd) {
  Syncs& syncs = TheSyncs();
  struct stat before {};
  fstat(fd, &before);
  const std::lock_guard lock(syncs.mutex);
  if (syncs.fail > 0) {
    --syncs.fail;
    errno = EIO;
    return -1;
  }
  const int result = static_cast<int>(syscall(SYS_fdatasync, fd));
  if (result == 0) syncs.synced[before.st_ino] = before.st_size;
  return result;
}

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using testing::ReadFile;
using enum WriteResult;

class FileSyncTest : public ::testing::Test {
 protected:
  FileSyncTest()
      : path_(folder_.File("out.jsonl")),
        output_(MakeFileOutput({.path = path_, .columns = OrderColumns()}, "worker-1")) {}

  // Of the file: its size, and how much of it was on the disk when it was last synced.
  std::pair<off_t, off_t> SizeAndSynced() const {
    struct stat now {};
    EXPECT_EQ(stat(path_.c_str(), &now), 0);
    const std::lock_guard lock(TheSyncs().mutex);
    return {now.st_size, TheSyncs().synced[now.st_ino]};
  }

  testing::TempDir folder_;
  const std::string path_;
  const std::unique_ptr<Output> output_;
};

TEST_F(FileSyncTest, AWriteIsAnsweredOnceAllOfItIsOnTheDisk) {
  for (const char* id : {"1", "2", "3"}) {
    const Batch batch{{.id = id}};
    ASSERT_THAT(Results(*output_, batch), ElementsAre(kCommitted));
    const auto [size, synced] = SizeAndSynced();
    EXPECT_GT(size, 0);
    EXPECT_EQ(synced, size);
  }
}

TEST_F(FileSyncTest, LinesThatCouldNotBeSyncedAreWrittenAgain) {
  TheSyncs().fail = 1;
  const Batch batch{{.id = "1"}};
  EXPECT_THAT(Failure(*output_, batch).error.Line(),
              ::testing::HasSubstr("the file could not be synced"));
  ASSERT_THAT(Results(*output_, batch), ElementsAre(kCommitted));
  EXPECT_EQ(ReadFile(path_),
            "{\"order_id\":\"1\",\"amount\":0}\n{\"order_id\":\"1\",\"amount\":0}\n");
  const auto [size, synced] = SizeAndSynced();
  EXPECT_EQ(synced, size);
}

}  // namespace
}  // namespace fencepost::consumer
