// All of the lock library: #include <locking/locking.h>, link fencepost::locking.
#pragma once

#if __cplusplus < 202002L
#error "fencepost needs C++20: compile with -std=c++20 or later"
#endif

#include "locking/base/error.h"
#include "locking/quorum_lock/lease.h"
#include "locking/quorum_lock/quorum_lock.h"
#include "locking/recipes/batch_lock.h"
#include "locking/recipes/election.h"
#include "locking/recipes/multi_lock.h"
#include "locking/recipes/reentrant_lock.h"
