// JSON lines into a file, or to stdout. At least once: there is no ledger, so a batch that failed
// half way is written again from its beginning.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/file/json_lines.h"
#include "consumer/outputs/file/line_writer.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "locking/base/fd.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

OutputError ToOutputError(int error, std::string what, std::string where) {
  std::string code = "output_unavailable";
  std::string hint;
  switch (error) {
    case EINTR:
      return {.error = {.code = "interrupted",
                        .what = "interrupted for shutdown",
                        .where = std::move(where)}};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = "output_full";
      hint = "give the disk room; the batch waits";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ENXIO:
      code = "output_denied";
      hint = "the folder must exist, and the file be writable and readable";
      break;
    default:
      break;
  }
  return {.error = {.code = std::move(code),
                    .what = fmt::format("{}: {}", what, std::strerror(error)),
                    .where = std::move(where),
                    .hint = std::move(hint)}};
}

// There is no reason to write few lines at a time; those behind a refused record come later.
constexpr std::size_t kMostLines = 10'000;

class FileOutput final : public Output {
 public:
  FileOutput(const FileOptions& options, std::string worker)
      : path_(options.path), lines_(options.columns, std::move(worker)) {}

  tl::expected<void, OutputError> Prepare() override;
  [[nodiscard]] std::size_t max_records() const override { return kMostLines; }
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  void Interrupt() override { writer_.Interrupt(); }

 private:
  tl::expected<void, int> Open();
  tl::expected<void, int> SyncFolder() const;
  [[nodiscard]] bool Moved() const;
  OutputError Fail(int error, std::string what);

  const std::string path_;
  JsonLines lines_;
  LineWriter writer_;
  Fd fd_;
};

OutputError FileOutput::Fail(int error, std::string what) {
  fd_.Close();
  return ToOutputError(error, std::move(what), path_);
}

// The path leads elsewhere than to the open file: it was renamed or removed (logrotate).
bool FileOutput::Moved() const {
  struct stat open {};
  struct stat named {};
  return fstat(fd_.get(), &open) != 0 || stat(path_.c_str(), &named) != 0 ||
         open.st_ino != named.st_ino || open.st_dev != named.st_dev;
}

// A new file's name must survive a crash, not only what is in it.
tl::expected<void, int> FileOutput::SyncFolder() const {
  std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || (fsync(fd.get()) != 0 && errno != EINVAL)) return tl::unexpected(errno);
  return {};
}

// Readable, to see how the file ends; without waiting, should it be a pipe that nobody reads.
tl::expected<void, int> FileOutput::Open() {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  fd_ = Fd(open(path_.c_str(), kFlags));
  if (!fd_.open() && errno == ENOENT) {
    fd_ = Fd(open(path_.c_str(), kFlags | O_CREAT, 0644));
    if (!fd_.open()) return tl::unexpected(errno);
    if (auto synced = SyncFolder(); !synced) return synced;
  }
  struct stat about {};
  if (!fd_.open() || fstat(fd_.get(), &about) != 0) return tl::unexpected(errno);
  if (S_ISFIFO(about.st_mode)) return tl::unexpected(ESPIPE);
  writer_.Use(fd_.get(), /*own=*/true);
  return {};
}

tl::expected<void, OutputError> FileOutput::Prepare() {
  if (fd_.open() && !Moved()) return {};
  fd_.Close();
  if (auto opened = Open(); !opened) {
    return tl::unexpected(Fail(opened.error(), "the file cannot be opened"));
  }
  return {};
}

tl::expected<std::vector<WriteOutcome>, OutputError> FileOutput::Write(
    const WriteRequest& request) {
  std::vector<WriteOutcome> outcomes(request.items.size());
  const std::string& lines = lines_.Fill(request.items, outcomes);
  if (lines.empty()) return outcomes;
  if (auto prepared = Prepare(); !prepared) return tl::unexpected(prepared.error());
  if (auto written = writer_.Append(lines); !written) {
    return tl::unexpected(Fail(written.error(), "lines could not be written"));
  }
  // A device has nothing to sync. After any other failure nobody knows what reached the disk, and
  // asking again would say that all did: the lines are written again.
  if (!Planted("answered_before_it_is_synced") && fdatasync(fd_.get()) != 0 && errno != EINVAL) {
    return tl::unexpected(Fail(errno, "the file could not be synced"));
  }
  return outcomes;
}

class StdoutOutput final : public Output {
 public:
  StdoutOutput(const StdoutOptions& options, std::string worker)
      : lines_(options.columns, std::move(worker)) {
    writer_.Use(STDOUT_FILENO, /*own=*/false);
  }

  tl::expected<void, OutputError> Prepare() override { return {}; }
  [[nodiscard]] std::size_t max_records() const override { return kMostLines; }
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  void Interrupt() override { writer_.Interrupt(); }

 private:
  JsonLines lines_;
  LineWriter writer_;
};

tl::expected<std::vector<WriteOutcome>, OutputError> StdoutOutput::Write(
    const WriteRequest& request) {
  std::vector<WriteOutcome> outcomes(request.items.size());
  const auto written = writer_.Append(lines_.Fill(request.items, outcomes));
  if (written) return outcomes;
  OutputError error = ToOutputError(written.error(), "lines could not be written", "stdout");
  if (written.error() == EPIPE) {
    error.fatal = true;
    error.error.hint = "the reader of the pipe is gone, and will not come back";
  }
  return tl::unexpected(std::move(error));
}

}  // namespace

std::unique_ptr<Output> MakeFileOutput(const FileOptions& options, std::string worker) {
  return std::make_unique<FileOutput>(options, std::move(worker));
}

std::unique_ptr<Output> MakeStdoutOutput(const StdoutOptions& options, std::string worker) {
  return std::make_unique<StdoutOutput>(options, std::move(worker));
}

}  // namespace fencepost::consumer
