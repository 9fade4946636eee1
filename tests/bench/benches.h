// What ./dev bench WHAT measures, beside the floors (floors/floors.h). Each prints its measurements
// (shared/turns.h), and throws when something cannot be started or measured, or a run did not have
// each effect exactly once.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

// The shipped lock and the floor, on five nodes: a side for each way to contact the nodes, a
// measurement for each number in flight.
void RunLocksBench(const Options& options);
// The same by a process each: `fencepost bench locks` and the programs of peers/.
void RunPeersBench(const Options& options);
// Kafka to PostgreSQL: shipped workers and the floor.
void RunPipelineBench(const Options& options);
// The same into two tables.
void RunTablesBench(const Options& options);
// Topic to topic in transactions: shipped workers, the floor and Kafka Streams (peers/streams).
void RunKafkaBench(const Options& options);
// Kafka to an http handler to PostgreSQL, and the floor on the same server.
void RunHandlerBench(const Options& options);
// From the time in a record to the commit of its effect, at a tenth of the rate of a first run; the
// floor is that of pipeline, at the same rate.
void RunLatencyBench(const Options& options);
// A worker's memory under load, and what it and the nodes spend while idle.
void RunMemoryBench(const Options& options);
// Bytes that a node spends on a remembered name.
void RunNodeMemoryBench(const Options& options);
// /metrics with 1,000 partitions: built in this process, and fetched over HTTP.
void RunScrapeBench(const Options& options);
// Shares of records that are refused, by the database or before it, beside a clean topic.
void RunDirtyBench(const Options& options);
// How the rate from Kafka to PostgreSQL changes with one thing that grows: a measurement for each
// point, without a floor. Throws std::invalid_argument for a curve that does not exist.
void RunGrowthBench(const Options& options);

}  // namespace fencepost::bench
