// Where an assignment starts (DESIGN section 3, Offsets). The decision is a pure function; the
// resolver asks the cluster and carries it out, inside the rebalance callback of the Kafka thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/commits.h"
#include "consumer/kafka/rdkafka_holders.h"
#include "consumer/options.h"

namespace fencepost::consumer {

// A topic's partition as the group sees it; the list holds all partitions, by number.
struct KnownPartition {
  bool owned = false;  // assigned to this worker
  std::optional<Offset> committed;
};

enum class StartStep : std::uint8_t {
  kReady,      // every owned partition has an offset
  kCommitAll,  // nothing is committed and the lowest is ours: commit the starts of all, by
               // start_from
  kWait,       // nothing is committed; the owner of the lowest partition will do it
  kCommitNew,  // others have offsets, some of ours do not: new partitions, from the earliest
};
StartStep DecideStart(const std::vector<KnownPartition>& partitions);

class StartResolver {
 public:
  enum class Outcome : std::uint8_t { kResolved, kRejoin, kCancelled };
  using Note = std::function<void(std::string_view event, std::string_view text)>;

  StartResolver(rd_kafka_t* consumer, Commits* commits, StartFrom start_from,
                std::function<bool()> cancelled, Note note);

  // Sets the offset of each partition in `assigned`; all of them are committed then. Blocks until
  // that is so, `limit` has passed or the group has moved on (kRejoin, why() says it), or
  // cancelled.
  Outcome Resolve(rd_kafka_topic_partition_list_t* assigned, std::chrono::milliseconds limit);
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Turn : std::uint8_t { kDone, kAgain, kRejoin };

  Turn ResolveOnce(const std::string& topic, rd_kafka_topic_partition_list_t* assigned);
  Turn CommitStarts(const std::string& topic, const std::vector<KnownPartition>& partitions,
                    StartStep step);
  tl::expected<int, std::string> PartitionCount(const std::string& topic);
  tl::expected<std::vector<KnownPartition>, std::string> Committed(
      const std::string& topic, int count, const rd_kafka_topic_partition_list_t* assigned);
  Turn Again(std::string why);

  rd_kafka_t* consumer_;
  Commits* commits_;
  StartFrom start_from_;
  std::function<bool()> cancelled_;
  Note note_;
  std::string why_;
};

}  // namespace fencepost::consumer
