// All of the lock library: #include <locking/locking.h>, link fencepost::locking.
#pragma once

#include "locking/error.h"
#include "locking/lease.h"
#include "locking/quorum_lock.h"
#include "locking/recipes/batch_lock.h"
#include "locking/recipes/election.h"
#include "locking/recipes/multi_lock.h"
#include "locking/recipes/reentrant_lock.h"
