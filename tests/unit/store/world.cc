#include "tests/unit/store/world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"

namespace fencepost::locking {
namespace {

constexpr WallTime kStart{Millis(1'800'000'000'000)};

}  // namespace

std::string RunId(int number) {
  return fmt::format("{:040}", number % 4 == 0 ? 999'999 - number : number);
}

int Told::Notes(const std::string& event) const {
  return static_cast<int>(std::count(notes.begin(), notes.end(), event));
}

World::World(int count, std::uint64_t seed) : nodes(Z(count)), random_(seed) {
  for (int i = 0; i < count; ++i) nodes[Z(i)].run_id = RunId(i);
}

int World::AddClient(std::vector<int> list, StoreCreation creation) {
  auto client = std::make_unique<Client>();
  client->links.resize(list.size());
  client->list = std::move(list);
  const Nonce own{{random_(), random_()}};
  client->store = std::make_unique<Store>(static_cast<int>(client->list.size()), options, creation,
                                          own, &client->told);
  clients_.push_back(std::move(client));
  return static_cast<int>(clients_.size()) - 1;
}

Now World::now() const { return {Instant(time_), kStart + std::chrono::floor<Millis>(time_)}; }

std::optional<Sentinel> World::SentinelOf(int node) const {
  const auto& raw = nodes[Z(node)].sentinel;
  return raw ? Sentinel::Decode(*raw) : std::nullopt;
}

void World::Wipe(int node) {
  nodes[Z(node)].sentinel.reset();
  nodes[Z(node)].forgot_at = now().boot;
}

void World::Restart(int number, bool with_data) {
  FakeNode& node = nodes[Z(number)];
  node.run_id = RunId(next_run_id_++);
  ++node.incarnation;
  node.forgot_at = now().boot;
  if (!with_data) node.sentinel.reset();
}

void World::Down(int node, bool down) {
  nodes[Z(node)].up = !down;
  if (down) ++nodes[Z(node)].incarnation;
}

void World::BreakLink(int number, int place) {
  Client& client = *clients_[Z(number)];
  Link& link = client.links[Z(place)];
  if (link.connected) client.store->OnDisconnected(place, now());
  link = Link{};
}

bool World::Send(Client& client, int place) {
  Link& link = client.links[Z(place)];
  const FakeNode& node = nodes[Z(client.list[Z(place)])];
  if (!link.connected) {
    if (!node.up) return false;
    link = Link{};
    link.incarnation = node.incarnation;
    link.hello = link.busy = true;
  } else {
    const std::optional<StoreCommand> command = client.store->TakeCommand(place);
    if (!command) return false;
    ++commands_;
    link.busy = true;
    link.executed = false;
    link.command = *command;
  }
  link.answer.call.sent_at = now().boot;
  return true;
}

void World::Execute(FakeNode& node, Link& link) {
  const WallTime time = now().wall + node.skew;
  link.executed = true;
  const bool write = !link.hello && link.command.kind == StoreCommand::Kind::kWrite;
  if (write && node.Write(link.command.write, time)) ++writes_;
  node.Describe(time, link.answer);
}

void World::Deliver(Client& client, int place) {
  Link& link = client.links[Z(place)];
  link.busy = link.executed = false;
  link.answer.call.received_at = now().boot;
  NodeInfo answer = link.answer;
  client.hide(answer);
  const bool hello = std::exchange(link.hello, false);
  link.connected = true;
  if (hello || link.command.kind == StoreCommand::Kind::kProbe) {
    client.store->OnConnected(place, answer, now());
  } else {
    client.store->OnSentinel(place, answer.sentinel, answer.call, now());
  }
}

bool World::Advance(Client& client, int place) {
  Link& link = client.links[Z(place)];
  FakeNode& node = nodes[Z(client.list[Z(place)])];
  const bool gone = !node.up || link.incarnation != node.incarnation;
  if ((link.connected || link.busy) && gone && !link.executed) {
    if (link.connected) client.store->OnDisconnected(place, now());
    link = Link{};
    return true;
  }
  if (!link.busy) return Send(client, place);
  if (link.executed) {
    Deliver(client, place);
  } else {
    Execute(node, link);
  }
  return true;
}

void World::Step() {
  Client& client = *clients_[random_() % clients_.size()];
  const int place = static_cast<int>(random_() % client.list.size());
  if (random_() % 8 == 0) Pass(Millis(static_cast<std::int64_t>(random_() % 40)));
  if (client.store->NextTime() <= now().boot) client.store->OnTime(now());
  Advance(client, place);
}

bool World::Busy() {
  bool any = false;
  for (const auto& client : clients_) {
    if (client->store->NextTime() <= now().boot) client->store->OnTime(now());
    for (int place = 0; place < static_cast<int>(client->list.size()); ++place) {
      any = Advance(*client, place) || any;
    }
  }
  return any;
}

void World::Run(Millis span) {
  const Nanos end = time_ + span;
  int turns = 0;
  while (true) {
    while (Busy()) FENCEPOST_CHECK(++turns < 20'000, "a store asks without end");
    Nanos next = end;
    for (const auto& client : clients_) {
      FENCEPOST_CHECK(client->store->NextTime() > now().boot, "NextTime must lie ahead");
      next = std::min(next, client->store->NextTime().time_since_epoch());
    }
    if (next >= end) break;
    time_ = std::chrono::ceil<Millis>(next);
  }
  time_ = std::max(time_, end);
}

bool World::RunUntilAvailable(int client, Millis span) {
  const Nanos end = time_ + span;
  while (!store(client).Available() && time_ < end) Run(Millis(250));
  return store(client).Available();
}

std::set<int> World::Counting(int number) const {
  const Client& client = *clients_[Z(number)];
  std::set<int> counting;
  for (int place = 0; place < static_cast<int>(client.list.size()); ++place) {
    const int number_of_node = client.list[Z(place)];
    const FakeNode& node = nodes[Z(number_of_node)];
    const Link& link = client.links[Z(place)];
    const std::optional<Sentinel> sentinel = SentinelOf(number_of_node);
    if (!link.connected || link.incarnation != node.incarnation || !node.up) continue;
    if (!client.store->Open(place) || client.store->Quarantined(place)) continue;
    if (!sentinel || !sentinel->complete) continue;
    if (NodeTime(number_of_node) < sentinel->quarantine_until) continue;
    counting.insert(number_of_node);
  }
  return counting;
}

void QuorumOracle::Look() {
  for (int client = 0; client < static_cast<int>(world_.clients()); ++client) {
    if (!world_.store(client).Available()) continue;
    const std::set<int> counting = world_.Counting(client);
    const int quorum = Quorum(static_cast<int>(world_.list(client).size()));
    if (static_cast<int>(counting.size()) < quorum) continue;
    history_[{client, counting}] = world_.now().boot;
  }
}

bool QuorumOracle::Disjoint() const {
  for (const auto& [a, when_a] : history_) {
    for (const auto& [b, when_b] : history_) {
      if (a.first >= b.first || world_.list(a.first) == world_.list(b.first)) continue;
      if (std::chrono::abs(when_a - when_b) > world_.options.max_ttl) continue;
      std::set<int> both = a.second;
      both.insert(b.second.begin(), b.second.end());
      if (both.size() >= world_.list(a.first).size() / 2 + world_.list(b.first).size() / 2 + 2) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace fencepost::locking
