// Finds the workers of pipelines, the members of their consumer groups, and asks all of them at
// once for /status: each where its observe.advertise says, else at the host that the group's
// coordinator sees, and the port of observe.http.
//
// Whoever may join a group is one of them, and chooses where it is asked. So credentials go to
// members only by TLS, where the port's certificate alone is trusted.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consumer/fleet/fleet.h"
#include "consumer/fleet/fleet_group.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// Where a worker is asked. `address`: empty where nobody knows; then `trouble` says why.
struct FleetMember {
  std::string worker;  // empty: nobody said
  std::string address;
  std::string trouble;
  auto operator<=>(const FleetMember&) const = default;
};

// Each once, by name. `port`: HOST:PORT of which the port is theirs.
std::vector<FleetMember> MembersAt(const std::vector<KafkaAdmin::Member>& members,
                                   const std::string& port);

// One thread.
class FleetLook {
 public:
  // The worker that looks, whose own status is not asked for over HTTP.
  struct Own {
    std::string worker;
    std::function<std::string()> status;
  };
  struct Limits {
    Millis kafka{2000};      // what is asked of Kafka
    Millis workers{2000};    // all of them
    std::size_t most = 512;  // workers
  };
  // `port`: by what, and at which port, they are asked.
  FleetLook(const std::vector<PipelineOptions>& pipelines, ObserveOptions port, Limits limits,
            std::optional<Own> own = {});

  // A fleet for each pipeline. Blocks within the limits. A worker that does not answer is a row
  // that says why.
  std::vector<Fleet> Look();
  // These workers instead of the groups' members: HOST:PORT.
  std::vector<Fleet> Look(const std::vector<std::string>& addresses);

  // The parts of a look: fleets without rows, and these by the members of each pipeline.
  using Members = std::vector<std::vector<FleetMember>>;
  [[nodiscard]] std::vector<Fleet> Empty() const;
  void Ask(std::vector<Fleet>& fleets, Members members) const;

 private:
  void TakeOwn(Fleet& fleet, std::vector<FleetMember>& members, const std::string& status) const;
  [[nodiscard]] std::string WhyNotAsked(const FleetMember& member, std::size_t asked) const;

  const ObserveOptions port_;
  const Limits limits_;
  const std::optional<Own> own_;
  std::vector<std::unique_ptr<FleetGroup>> groups_;
};

}  // namespace fencepost::consumer
