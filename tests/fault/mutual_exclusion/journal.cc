#include "tests/fault/mutual_exclusion/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/support/process.h"

namespace fencepost::torture {

Journal::Journal(const std::string& path)
    : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw std::runtime_error("cannot write " + path);
}

Journal::~Journal() { close(fd_); }

void Journal::Write(const Entry& entry) const {
  if (write(fd_, &entry, sizeof(entry)) != sizeof(entry)) std::abort();
}

std::vector<Entry> ReadJournal(const std::string& path) {
  const std::string bytes = testing::ReadFile(path);
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

}  // namespace fencepost::torture
