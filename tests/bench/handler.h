// ./dev bench handler: a pipeline with an http handler, from Kafka to PostgreSQL, by position,
// against a loop of libcurl that calls the same server with as many requests out
// (floors/http_floor.h), and has neither Kafka, nor a lock, nor a database.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

void RunHandlerBench(const Options& options);

}  // namespace fencepost::bench
