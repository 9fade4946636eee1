// What must hold in a small world, and how its states are told apart.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/model/flow/small_world_history.h"

namespace fencepost::consumer::small_world {

using locking::NodeModel;
using locking::Op;

namespace {

constexpr int kCalmSteps = 24;  // half ttls within which all must be done, once nothing goes wrong
constexpr int kCalmMoves = 400;

}  // namespace

// --- what must hold ----------------------------------------------------------------------------

// By the record's own position, apart from how the flow finds it.
std::string World::NameOf(const std::string& id) const {
  if (rules_.block == 1) return "fencepost:{p}:" + id;
  const auto slash = id.rfind('/') + 1;
  const int first = std::stoi(id.substr(slash)) / rules_.block * rules_.block;
  return fmt::format("fencepost:{{p}}:{}{}-{}", id.substr(0, slash), first,
                     first + rules_.block - 1);
}

bool World::Held(const std::string& name, locking::Token token) const {
  std::size_t held = 0;
  for (const NodeModel& node : shared_.nodes) {
    const auto holder = node.Holder(name, shared_.now.wall);
    held += holder && holder->token == token ? 1 : 0;
  }
  return held > shared_.nodes.size() / 2;
}

// It has just gone out: under a lease of its own name.
void World::NoteUse(Worker& worker, std::uint64_t what, const std::string& id) {
  const auto [use, made] = worker.uses.try_emplace({what, id});
  if (!made) return;
  worker.bench->flow.ForEachRecord([&](const InFlight& in) {
    const bool out = in.stage() == Stage::kWriting || in.stage() == Stage::kHandling;
    if (!out || in.identity.id != id || in.unit == nullptr) return;
    const bool valid = Leased(in) && worker.bench->core.Valid(in.unit->lock(), shared_.now);
    if (valid) use->second = {in.unit->name(), in.unit->token(), {}};
    if (valid) use->second.until = worker.bench->core.ValidUntil(in.unit->lock());
  });
  if (use->second.name != NameOf(id)) {
    Break(fmt::format("{} is processed under the lease of '{}'", id, use->second.name));
  }
}

void World::Check() {
  for (Worker& worker : workers_) {
    if (worker.bench == nullptr) continue;
    const FlowBench& bench = *worker.bench;
    std::set<std::pair<std::uint64_t, std::string>> out;
    for (const auto& batch : bench.writes) {
      const std::uint64_t what = batch->id << 1U;
      for (const WriteItem& item : batch->request.items) {
        if (!out.emplace(what, item.record_id).second) Break("one record is written twice at once");
        NoteUse(worker, what, std::string(item.record_id));
      }
    }
    for (const HandlerCall& call : bench.calls) {
      if (std::ranges::count(bench.cancels, call.id) > 0) continue;
      out.emplace(call.id << 1U | 1U, call.record_id);
      NoteUse(worker, call.id << 1U | 1U, call.record_id);
    }
    std::erase_if(worker.uses, [&](const auto& use) { return !out.contains(use.first); });
    for (const auto& [what, use] : worker.uses) {
      if (shared_.now.boot < use.until && !Held(use.name, use.token)) {
        Break(fmt::format("{} is processed, and its lease was given away", what.second));
      }
    }
    bench.flow.ForEachRecord([&](const InFlight& in) {
      if (!Leased(in) || !bench.core.Valid(in.unit->lock(), shared_.now)) return;
      if (!Held(in.unit->name(), in.unit->token())) Break(in.unit->name() + " is held by nobody");
    });
  }
}

// Nothing is under way: what stands held is somebody's lease, or was left behind.
void World::CheckLeft() {
  for (const NodeModel& node : shared_.nodes) {
    node.ForEach(shared_.now.wall, [&](std::string_view name, const NodeModel::Unit& unit) {
      if (unit.state != NodeModel::State::kHeld || unit.deadline <= shared_.now.wall) return;
      for (const Worker& worker : workers_) {
        if (worker.bench == nullptr || !worker.nonces.contains(unit.nonce)) continue;
        bool used = worker.ended.contains(unit.token);  // an extension came late
        worker.bench->flow.ForEachRecord([&](const InFlight& in) {
          used = used || (in.unit != nullptr && in.unit->name() == name &&
                          in.unit->lease() != Lease::kNone);
        });
        const bool known = rules_.block == 1 && rows_.contains(std::string(name.substr(14)));
        if (!used && !known) Break(fmt::format("{} is left behind and not done", name));
      }
    });
  }
}

bool World::Finished() const {
  if (committed_ < End()) return false;
  return std::ranges::all_of(workers_, [](const Worker& worker) {
    return worker.bench == nullptr || worker.bench->flow.in_flight() == 0;
  });
}

void World::CheckEnd() {
  for (Offset offset = 0; offset < End(); ++offset) {
    const std::string id = IdOf(offset);
    const bool refused = rules_.refused && *rules_.refused == offset;
    if (!refused && (!rows_.contains(id) || letters_.contains(id))) Break(id + " has no effect");
    if (refused && (rows_.contains(id) || !letters_.contains(id))) Break(id + " was not refused");
  }
  for (const auto& [id, row] : rows_) {
    if (row.effects != 1) Break(id + " has its effect twice");
  }
  for (const Worker& worker : workers_) {
    if (worker.bench != nullptr && worker.bench->core.held() != 0) Break("a lease is never ended");
  }
}

void World::EndInCalm() {
  const int half_ttls = std::exchange(left_.half_ttls, 0);
  for (int step = 0, moves = 0; broken_.empty() && step < kCalmSteps && !Finished();) {
    const std::vector<Step> steps = Enabled();
    const auto next = std::ranges::find_if(steps, [](Step one) { return !IsTrouble(one.kind); });
    if (next != steps.end()) {
      if (++moves > kCalmMoves) return Break("it never comes to rest");
      Do(*next);
    } else {
      CheckLeft();
      left_.half_ttls = 1;
      Do({Kind::kHalfTtl});
      ++step;
    }
  }
  left_.half_ttls = half_ttls;
  if (!broken_.empty()) return;
  if (!Finished()) return Break("a record waits for ever: " + Print());
  CheckEnd();
}

// --- states ------------------------------------------------------------------------------------

// Times are told apart as far as the steps of time do.
int World::Bucket(Instant at) const {
  const Nanos half = shared_.lock.ttl / 2;
  if (at <= shared_.now.boot) return 0;
  return static_cast<int>(std::min<Nanos::rep>(4, 1 + (at - shared_.now.boot) / half));
}

void World::Print(const Worker& worker, std::string& text) const {
  text += fmt::format("\n{} {} {} {} {}|", static_cast<int>(worker.part), worker.epoch == epoch_,
                      worker.next, worker.replayed, worker.ticked);
  if (worker.bench == nullptr) return;
  const FlowBench& bench = *worker.bench;
  std::map<std::pair<PartitionIndex, Offset>, std::string> records;
  std::map<std::uint64_t, std::size_t> units;  // by cookie: as they come
  bench.flow.ForEachRecord([&](const InFlight& in) {
    std::string& one = records[{in.record.partition, in.record.offset}];
    if (!one.empty()) one += '+';  // of an assignment that is over, too
    one += fmt::format("{} {}{}{}{}{}", static_cast<int>(in.stage()), in.assignment->gone,
                       in.out_of_prefix, in.looking, in.handled, in.letter != nullptr);
    if (in.unit == nullptr) return;
    const LockUnit& unit = *in.unit;
    const std::size_t which = units.try_emplace(unit.cookie(), units.size()).first->second;
    one += fmt::format(" {} {}{}{}{}{}", which, static_cast<int>(unit.lease()), in.same_id_ahead,
                       unit.closed(), unit.round_failed(), unit.in_ledger());
    if (unit.lease() != Lease::kLeased) return;
    one += fmt::format("u{}", Bucket(bench.core.ValidUntil(unit.lock())));
  });
  for (const auto& [where, record] : records) {
    text += fmt::format("{}/{}:{};", where.first, where.second, record);
  }
  for (const auto& ops : bench.outbox()) {
    text += '|';
    for (const Op& op : ops) text += fmt::format("{}{} ", static_cast<int>(op.kind), op.name);
  }
  for (int node = 0; node < static_cast<int>(shared_.nodes.size()); ++node) {
    text += bench.core.HasOps(node) ? '+' : '-';
  }
  text += fmt::format("|{} {}|", bench.core.held(), Bucket(bench.core.NextTime()));
  for (const auto& batch : bench.writes) {
    for (const WriteItem& item : batch->request.items) text += fmt::format("{} ", item.record_id);
    text += ';';
  }
  for (const auto& outcomes : worker.happened) {
    text += '!';
    for (const WriteOutcome& one : outcomes) text += std::to_string(static_cast<int>(one.result));
  }
  text += '|' + bench.Lookups() + '|' + bench.Calls() + '|' + bench.Letters();
  text += fmt::format("|{}", bench.Watermark(0));
}

std::string World::Print() const {
  std::string text =
      fmt::format("{} {} {} {} {} {} {}|{}|", left_.half_ttls, left_.ttls, left_.revokes,
                  left_.losses, left_.crashes, left_.unanswered, left_.aborted, committed_);
  for (const auto& [id, row] : rows_) text += id + '<' + row.source + ' ';
  for (const auto& [id, count] : letters_) text += fmt::format("{}~{} ", id, count > 1);
  for (const auto& items : orphans_) {
    text += '^';
    for (const Item& item : items) text += item.id + ' ';
  }
  for (const NodeModel& node : shared_.nodes) {
    std::map<std::string, std::string> names;
    node.ForEach(shared_.now.wall, [&](std::string_view name, const NodeModel::Unit& unit) {
      std::string& one = names[std::string(name)];
      one = std::to_string(static_cast<int>(unit.state));
      if (unit.state != NodeModel::State::kHeld) return;
      for (const Worker& worker : workers_) one += worker.nonces.contains(unit.nonce) ? '*' : '.';
      one += std::to_string(Bucket(shared_.now.boot + (unit.deadline - shared_.now.wall)));
    });
    text += fmt::format("|{}", fmt::join(names, ","));
  }
  for (const Worker& worker : workers_) Print(worker, text);
  return text;
}

}  // namespace fencepost::consumer::small_world
