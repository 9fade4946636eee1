#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::testing {

SmallDisk::SmallDisk(int mebibytes) {
  const std::string how = fmt::format("size={}m,mode=0777", mebibytes);
  if (mount("tmpfs", path().c_str(), "tmpfs", 0, how.c_str()) == 0) {
    keeper_ = popen(fmt::format("cat >/dev/null; umount --lazy {}", path()).c_str(), "we");
  } else {
    why_ = fmt::format("a file system of its own needs CAP_SYS_ADMIN: {}", std::strerror(errno));
  }
}

SmallDisk::~SmallDisk() {
  if (keeper_ != nullptr) pclose(keeper_);
}

std::string SmallDisk::FolderOf(const std::string& user) const {
  const std::string folder = folder_.File(user);
  std::filesystem::create_directory(folder);
  if (geteuid() == 0) {
    const Finished chown = RunToEnd({.argv = {"chown", user, folder}});
    if (chown.exit_code != 0) throw std::runtime_error(chown.output);
  }
  return folder;
}

void SmallDisk::Fill() const {
  const std::string filler = folder_.File("filler");
  const int file = open(filler.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  while (write(file, block.data(), block.size()) > 0) {
  }
  close(file);
}

void SmallDisk::MakeRoom() const { std::filesystem::remove(folder_.File("filler")); }

}  // namespace fencepost::testing
