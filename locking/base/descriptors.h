// The open file descriptors of this process. Async-signal-safe: nothing is allocated, so that it
// may be called between fork and exec while other threads run. Linux; newer system calls
// (close_range) are not relied on: an old kernel or a seccomp profile refuses them.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

namespace fencepost {

// Visits the open descriptors, which may be closed meanwhile. Whether /proc could tell them.
template <typename Visit>
bool VisitDescriptorsByProc(const Visit& visit) {
  const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) char entries[2048];
  ssize_t size = 0;
  while ((size = getdents64(folder, entries, sizeof entries)) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const int descriptor = std::atoi(entry->d_name);
      if (entry->d_name[0] != '.' && descriptor != folder) visit(descriptor);
    }
  }
  close(folder);
  return size == 0;
}

// The same without /proc: up to the process's limit of descriptors, at most 65,536 (a container's
// limit may be a thousand million).
template <typename Visit>
void VisitDescriptors(const Visit& visit) {
  if (VisitDescriptorsByProc(visit)) return;
  constexpr int kMostWithoutProc = 65'536;
  rlimit limit{};
  int end = kMostWithoutProc;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kMostWithoutProc) {
    end = static_cast<int>(limit.rlim_cur);
  }
  for (int descriptor = 0; descriptor < end; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0) visit(descriptor);
  }
}

}  // namespace fencepost
