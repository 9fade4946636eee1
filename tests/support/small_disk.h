// A file system of its own in memory, that can be filled to the last block. Needs CAP_SYS_ADMIN.
#pragma once

#include <cstdio>
#include <string>

#include "tests/support/process.h"

namespace fencepost::testing {

// A shell at the end of a pipe takes it away, also when this program dies.
class SmallDisk {
 public:
  explicit SmallDisk(int mebibytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] const std::string& why() const { return why_; }  // there is none; "": there is
  [[nodiscard]] std::string path() const { return folder_.path().string(); }
  // A new folder in it, which belongs to that user of the system when we are root.
  [[nodiscard]] std::string FolderOf(const std::string& user) const;
  void Fill() const;
  void MakeRoom() const;  // no effect where it was not filled

 private:
  TempDir folder_;
  std::string why_;
  FILE* keeper_ = nullptr;
};

}  // namespace fencepost::testing
