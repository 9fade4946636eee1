// JSON lines into files and to stdout: what is there after good days and bad ones.
#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::ReadFile;
using testing::WaitUntil;
using enum WriteResult;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() : path_(folder_.File("out.jsonl")) {}
  [[nodiscard]] std::unique_ptr<Output> Open(std::vector<Column> columns = OrderColumns()) const {
    return MakeFileOutput({.path = path_, .columns = std::move(columns)}, "worker-1");
  }
  static std::string Refusal(const std::string& path) {
    const auto prepared = MakeFileOutput({.path = path, .columns = {}}, "w")->Prepare();
    return prepared ? "" : prepared.error().error.Line();
  }

  testing::TempDir folder_;
  std::string path_;
};

TEST_F(FileTest, ARowIsALineInTheOrderOfTheRecords) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  EXPECT_TRUE(std::filesystem::exists(path_));
  const Batch batch{{.id = "z", .offset = 1},
                    {.id = "b", .value = "{}"},
                    {.id = "a", .offset = 2},
                    {.id = "c", .values = HandlerValues{}},
                    {.id = "d",
                     .values = {{R"({"order_id":"d1","amount":1.50})",
                                 R"({"order_id":"d2","amount":12345678901234567890})"}}}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[1].result, kBadRecord);
  EXPECT_THAT((*outcomes)[1].detail, HasSubstr("column order_id from json:/order_id: "));
  for (const std::size_t i : {0, 2, 4}) EXPECT_EQ((*outcomes)[i].result, kCommitted);
  EXPECT_EQ((*outcomes)[3].result, kNoOutput) << "it has no value";
  EXPECT_EQ(ReadFile(path_),
            "{\"order_id\":\"z\",\"amount\":1}\n{\"order_id\":\"a\",\"amount\":2}\n"
            "{\"order_id\":\"d1\",\"amount\":1.50}\n"
            "{\"order_id\":\"d2\",\"amount\":12345678901234567890}\n");
  const Batch next{{.id = "e", .offset = 3}};
  EXPECT_THAT(Results(*Open(), next), ElementsAre(kCommitted));
  EXPECT_THAT(ReadFile(path_), EndsWith("}\n{\"order_id\":\"e\",\"amount\":3}\n"));
  EXPECT_FALSE(output->Lookup({"e"}).value()[0]) << "there is no ledger";
}

TEST_F(FileTest, ARenamedOrRemovedFileIsMadeAnew) {
  const auto output = Open();
  const Batch first{{.id = "1"}};
  const Batch second{{.id = "2"}};
  const Batch third{{.id = "3"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  std::filesystem::rename(path_, path_ + ".1");
  ASSERT_THAT(Results(*output, second), ElementsAre(kCommitted));
  EXPECT_THAT(ReadFile(path_ + ".1"), HasSubstr("\"1\""));
  EXPECT_THAT(Lines(ReadFile(path_)), ElementsAre(R"({"order_id":"2","amount":0})"));
  std::filesystem::remove(path_);
  ASSERT_THAT(Results(*output, third), ElementsAre(kCommitted));
  EXPECT_THAT(Lines(ReadFile(path_)), ElementsAre(R"({"order_id":"3","amount":0})"));
}

TEST_F(FileTest, ALineThatACrashLeftHalfWrittenIsEndedFirst) {
  std::ofstream(path_) << "{\"order_id\":\"whole\"}\n{\"order_id\":\"ha";
  const auto output = Open();
  const Batch batch{{.id = "1"}, {.id = "2"}};
  ASSERT_EQ(Results(*output, batch), All(2, kCommitted));
  EXPECT_THAT(Lines(ReadFile(path_)),
              ElementsAre(R"({"order_id":"whole"})", R"({"order_id":"ha)",
                          R"({"order_id":"1","amount":0})", R"({"order_id":"2","amount":0})"));
}

TEST_F(FileTest, LinesGluedToOneThatAnotherWorkerToreAreWrittenAgain) {
  const auto output = Open();
  const Batch first{{.id = "1"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  std::ofstream(path_, std::ios::app) << "{\"order_id\":\"ha";
  const Batch batch{{.id = "2"}, {.id = "3"}};
  ASSERT_EQ(Results(*output, batch), All(2, kCommitted));
  EXPECT_THAT(
      Lines(ReadFile(path_)),
      ElementsAre(R"({"order_id":"1","amount":0})", R"({"order_id":"ha{"order_id":"2","amount":0})",
                  R"({"order_id":"3","amount":0})", R"({"order_id":"2","amount":0})",
                  R"({"order_id":"3","amount":0})"));
}

// A file system of 64 KiB, for root.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST_F(FileTest, AFullDiskIsPatienceAndOnlyWholeLinesCount) {
  const SmallDisk disk(folder_.File("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "only root may mount";
  path_ = folder_.File("disk/out.jsonl");
  const std::string filler = folder_.File("disk/filler");
  std::ofstream(filler) << std::string(16 << 10, 'x');
  const auto output = Open();
  Batch batch;
  batch.AddMany("o-", 2000);
  const OutputError full = Failure(*output, batch);
  EXPECT_EQ(full.error.code, "output_full");
  EXPECT_THAT(full.error.Line(), HasSubstr("lines could not be written: No space left on device; "
                                           "give the disk room"));
  EXPECT_FALSE(full.retry_at_once);
  const std::string torn = ReadFile(path_);
  ASSERT_FALSE(torn.empty());
  ASSERT_NE(torn.back(), '\n') << "the disk ends within a line";
  std::filesystem::remove(filler);
  Batch less;
  less.AddMany("p-", 100);
  ASSERT_EQ(Results(*output, less), All(100, kCommitted));
  const std::vector<std::string> lines = Lines(ReadFile(path_));
  int whole = 0;
  for (const std::string& line : lines) whole += line.front() == '{' && line.back() == '}';
  EXPECT_EQ(whole, static_cast<int>(lines.size()) - 1) << "one line is torn";
  EXPECT_EQ(lines[lines.size() - 100], R"({"order_id":"p-0000","amount":0})");
}

TEST_F(FileTest, AFullDeviceIsPatience) {
  path_ = "/dev/full";
  const auto output = Open();
  const Batch batch{{.id = "1"}};
  EXPECT_EQ(Failure(*output, batch).error.code, "output_full");
  path_ = "/dev/null";
  EXPECT_THAT(Results(*Open(), batch), ElementsAre(kCommitted));
}

TEST_F(FileTest, ManyWritersShareAFile) {
  constexpr int kWriters = 3;
  constexpr int kRounds = 20;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const auto output = Open();
      for (int round = 0; round < kRounds; ++round) {
        Batch batch;
        batch.AddMany(fmt::format("w{}-{}-", w, round), 100);
        EXPECT_EQ(Results(*output, batch), All(100, kCommitted));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::vector<std::string> lines = Lines(ReadFile(path_));
  const std::set<std::string> unique(lines.begin(), lines.end());
  EXPECT_EQ(lines.size(), kWriters * kRounds * 100u);
  EXPECT_EQ(unique.size(), lines.size());
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("{\"order_id\":\"w") && line.ends_with("}")) << line;
  }
}

TEST_F(FileTest, SaysWhatIsWrongWithThePath) {
  EXPECT_THAT(Refusal(folder_.File("none/out.jsonl")),
              HasSubstr("the file cannot be opened: No such file or directory; the folder must "
                        "exist"));
  EXPECT_THAT(Refusal(folder_.path().string()), HasSubstr("Is a directory"));
  const std::string pipe = folder_.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Refusal(pipe), HasSubstr("Illegal seek")) << "and it does not hang";
}

TEST_F(FileTest, AFileThatWasFixedIsTakenAtTheNextWrite) {
  path_ = folder_.File("later/out.jsonl");
  const auto output = Open();
  const Batch batch{{.id = "1"}};
  EXPECT_EQ(Failure(*output, batch).error.code, "output_denied");
  std::filesystem::create_directory(folder_.File("later"));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
}

TEST_F(FileTest, AfterInterruptNothingIsWritten) {
  const auto output = Open();
  output->Interrupt();
  const Batch batch{{.id = "1"}};
  EXPECT_EQ(Failure(*output, batch).error.code, "interrupted");
  EXPECT_EQ(ReadFile(path_), "");
}

// stdout becomes something else while it lives.
class Redirected {
 public:
  explicit Redirected(int to) : saved_(dup(STDOUT_FILENO)) {
    fflush(stdout);
    dup2(to, STDOUT_FILENO);
  }
  ~Redirected() {
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int saved_;
};

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    close(ends[1]);
  }
  void CloseReader() {
    if (ends[0] >= 0) close(ends[0]);
    ends[0] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

TEST(StdoutOutput, WritesWhatAReaderOfThePipeCanTakeAndWaitsForTheRest) {
  Pipe pipe;
  Batch batch;
  batch.AddMany("o-", 5000);  // more than a pipe holds
  std::string read;
  std::vector<WriteResult> results;
  {
    const Redirected stdout_is(pipe.ends[1]);
    const auto output = MakeStdoutOutput({.columns = OrderColumns()}, "w");
    ASSERT_TRUE(output->Prepare());
    auto written = ResultsAside(*output, batch);
    std::array<char, 65536> buffer{};
    while (read.size() < 5000 * 25 || read.back() != '\n' || Lines(read).size() < 5000) {
      const ssize_t got = ::read(pipe.ends[0], buffer.data(), buffer.size());
      if (got <= 0) break;
      read.append(buffer.data(), static_cast<std::size_t>(got));
    }
    results = written.get();
  }
  EXPECT_EQ(results, All(5000, kCommitted));
  const auto lines = Lines(read);
  ASSERT_EQ(lines.size(), 5000u);
  EXPECT_EQ(lines[4999], R"({"order_id":"o-4999","amount":4999})");
}

TEST(StdoutOutput, InterruptEndsTheWaitForASlowReader) {
  Pipe pipe;
  Batch batch;
  batch.AddMany("o-", 5000);
  Written written;
  {
    const Redirected stdout_is(pipe.ends[1]);
    const auto output = MakeStdoutOutput({.columns = OrderColumns()}, "w");
    auto writing = WriteAside(*output, batch);
    const auto full = [&] {
      pollfd writable{pipe.ends[1], POLLOUT, 0};
      return poll(&writable, 1, 0) == 0;
    };
    EXPECT_TRUE(WaitUntil(10s, "the pipe is full", full));
    output->Interrupt();
    written = writing.get();
  }
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().error.code, "interrupted");
}

TEST(StdoutOutput, AReaderThatHasGoneIsTheEndOfThisWorker) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.CloseReader();
  const Batch batch{{.id = "1"}};
  Written written;
  {
    const Redirected stdout_is(pipe.ends[1]);
    written = WriteOnce(*MakeStdoutOutput({.columns = {}}, "w"), batch);
  }
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().fatal);
  EXPECT_THAT(written.error().error.Line(),
              HasSubstr("Broken pipe; the reader of the pipe is gone"));
}

TEST(StdoutOutput, AFileThatIsFullIsPatience) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const Batch batch{{.id = "1"}};
  Written written;
  {
    const Redirected stdout_is(full);
    written = WriteOnce(*MakeStdoutOutput({.columns = {}}, "w"), batch);
  }
  close(full);
  ASSERT_FALSE(written);
  EXPECT_FALSE(written.error().fatal);
  EXPECT_EQ(written.error().error.code, "output_full");
}

}  // namespace
}  // namespace fencepost::consumer
