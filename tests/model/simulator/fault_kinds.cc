#include "tests/model/simulator/fault_kinds.h"

#include <algorithm>

#include "tests/model/simulator/plan.h"

namespace fencepost::simulator {
namespace {

// Of so many thousandth.
template <int Plan::*rate, int low, int high>
constexpr FaultKind Rate(std::string_view name) {
  return {name, [](Plan& plan, Random& random) { plan.*rate = random.Between(low, high); },
          [](Plan& plan) { plan.*rate = 0; }};
}

// Some times while the trouble lasts, on the average.
template <Nanos Plan::*mean, int most>
constexpr FaultKind Times(std::string_view name) {
  return {name,
          [](Plan& plan, Random& random) {
            plan.*mean = plan.faults_end / random.Between(2, 2 * most) * 2;
          },
          [](Plan& plan) { plan.*mean = Nanos(0); }};
}

template <Mood mood>
constexpr FaultKind Table(std::string_view name) {
  return {name,
          [](Plan& plan, Random& random) {
            plan.moods[static_cast<std::size_t>(mood)] = random.Between(30, 250);
          },
          [](Plan& plan) { plan.moods[static_cast<std::size_t>(mood)] = 0; }};
}

// Some of the work is done by then, and most of the trouble is still to come.
void ReplaceLogs(Plan& plan, Random& random) {
  plan.produce_for = std::max(plan.produce_for, plan.faults_end * 2 / 3);
  plan.faults_end = std::max(plan.faults_end, plan.produce_for);
  plan.replaced_at = random.Time(plan.produce_for / 4, plan.produce_for * 3 / 4);
  plan.refilled_at_once = random.Chance(500);
}

// By Fault.
constexpr std::array<FaultKind, kFaults> kKindsOfFaults = {
    Rate<&Plan::losses, 2, 40>("messages lost"),
    Rate<&Plan::slow_calls, 2, 40>("messages late"),
    Rate<&Plan::pieces, 10, 200>("replies in pieces"),
    Times<&Plan::cuts, 4>("node cut off"),
    Times<&Plan::freezes, 4>("node frozen"),
    Times<&Plan::restarts, 3>("node restarted"),
    Times<&Plan::wipes, 3>("node wiped"),
    Times<&Plan::unfit, 2>("node unfit"),
    Times<&Plan::evictions, 3>("keys evicted"),
    Times<&Plan::replaced, 1>("node replaced by another host"),
    Times<&Plan::node_jumps, 3>("node clock stepped"),
    {"wakes lost, late, doubled",
     [](Plan& plan, Random& random) {
       plan.wakes_lost = random.Chance(300) ? 1000 : random.Between(0, 600);
       plan.wakes_late = random.Between(0, 500);
       plan.wakes_doubled = random.Between(0, 300);
     },
     [](Plan& plan) { plan.wakes_lost = plan.wakes_late = plan.wakes_doubled = 0; }},
    Times<&Plan::pauses, 4>("worker stalled"),
    Times<&Plan::crashes, 4>("worker crashed"),
    Rate<&Plan::crashes_at_actions, 2, 20>("worker crashed at an action"),
    Times<&Plan::leaves, 3>("worker stopped in order"),
    Times<&Plan::jumps, 4>("worker wall clock stepped"),
    Times<&Plan::boot_jumps, 3>("worker asleep by its clock"),
    Times<&Plan::rebalances, 4>("rebalance"),
    Rate<&Plan::commit_faults, 30, 300>("offset commit lost or refused"),
    Rate<&Plan::aborts, 30, 300>("transaction aborted"),
    {"partitions added",
     [](Plan& plan, Random& random) {
       plan.added = random.Between(1, 2);
       plan.added_at = random.Time(Nanos(0), plan.produce_for);
     },
     [](Plan& plan) { plan.added = 0; }},
    Rate<&Plan::offsets_lost, 100, 400>("offsets of the group lost"),
    Rate<&Plan::letter_faults, 50, 400>("letter lost or unacknowledged"),
    Times<&Plan::letters_refused, 3>("letters refused for a while"),
    {"dead letters replayed",
     [](Plan& plan, Random& random) {
       plan.replays = plan.faults_end / random.Between(2, 8);
       plan.flow.identity.accept_replay_ids = true;
     },
     [](Plan& plan) {
       plan.replays = Nanos(0);
       plan.flow.identity.accept_replay_ids = false;
     }},
    Rate<&Plan::handler_failures, 30, 400>("handler fails"),
    Rate<&Plan::handler_hangs, 5, 100>("handler hangs"),
    Times<&Plan::handler_outages, 3>("handler out for a while"),
    Rate<&Plan::output_faults, 30, 250>("transaction unanswered"),
    Rate<&Plan::serializations, 30, 400>("transaction not serializable"),
    Table<Mood::kRefusesAll>("table refuses all"),
    Table<Mood::kLocked>("table locked"),
    Table<Mood::kSlow>("table slow"),
    Table<Mood::kFull>("table full"),
    Times<&Plan::failovers, 2>("output lost its tail"),
    {"ledger rows pruned",
     [](Plan& plan, Random& random) {
       // A late transaction ends within a quarter of it (Flow::TellPrunable).
       plan.keep = std::chrono::ceil<std::chrono::seconds>(4 * plan.LongestWrite());
       plan.flow.ledger_row_lifetime = Millis(*plan.keep) / 2;
       plan.produce_for += *plan.keep * random.Between(1, 2);
       plan.faults_end = std::max(plan.faults_end, plan.produce_for);
     },
     [](Plan& plan) {
       plan.keep.reset();
       plan.flow.ledger_row_lifetime.reset();
     }},
    Times<&Plan::cut_offs, 2>("worker cut off from the output"),
    Times<&Plan::deletions, 2>("oldest records deleted"),
    {"topic made again",
     [](Plan& plan, Random& random) {
       ReplaceLogs(plan, random);
       plan.offsets_go = random.Chance(300);
     },
     [](Plan& plan) { plan.replaced_at = Nanos(0); }},
    {"ends of logs lost", ReplaceLogs, [](Plan& plan) { plan.replaced_at = Nanos(0); }},
    Times<&Plan::releases, 2>("content rule changed, worker by worker"),
};

}  // namespace

const FaultKind& KindOf(Fault fault) { return kKindsOfFaults[static_cast<std::size_t>(fault)]; }

}  // namespace fencepost::simulator
