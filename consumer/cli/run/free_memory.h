// Memory that nobody uses any more, given back to the system.
#pragma once

namespace fencepost::cli {

// What the backlog of an outage took stays with the allocator once it is freed: glibc gives back
// the end of an arena alone, and has up to eight arenas a core, so that a worker would seem to grow
// for hours, until each has had its worst moment (malloc_trim(3)). Locks one arena at a time. Any
// thread; no effect with an allocator other than glibc's.
void ReturnFreeMemory();

}  // namespace fencepost::cli
