// Memory that nobody uses any more, given back to the system.
#pragma once

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace fencepost::cli {

// What the backlog of an outage took stays with the allocator once it is freed: glibc gives back
// the end of an arena alone, and has up to eight arenas a core, so that a worker would seem to grow
// for hours, until each has had its worst moment (malloc_trim(3)). Locks one arena at a time. Any
// thread; no effect with an allocator other than glibc's.
inline void ReturnFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace fencepost::cli
