#include "tests/e2e/life/audit.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fencepost::testing {
namespace {

// Counts what is wrong and keeps the first example.
class Trouble {
 public:
  explicit Trouble(std::string what) : what_(std::move(what)) {}

  void Add(const std::string& example) {
    if (count_++ == 0) first_ = example;
  }
  [[nodiscard]] std::string Text() const {
    return count_ == 0 ? "" : fmt::format("{}: {}, the first is {}\n", what_, count_, first_);
  }

 private:
  std::string what_;
  std::string first_;
  int count_ = 0;
};

std::string Where(Position position) {
  return fmt::format("{}/{}", position.partition, position.offset);
}

// TOPIC/PARTITION/OFFSET
Position PositionOf(const std::string& source) {
  const std::size_t last = source.rfind('/');
  const std::size_t first = source.rfind('/', last - 1);
  return {std::stoi(source.substr(first + 1, last - first - 1)),
          std::stoll(source.substr(last + 1))};
}

std::string Line(const Call& call) {
  return fmt::format("{} ({}, token {}, life {}, at {} us for {} us{})", call.record_id,
                     call.source, call.token, call.life, call.begin_ns / 1000,
                     (call.end_ns - call.begin_ns) / 1000, call.refused ? ", refused" : "");
}

std::vector<Call> Sorted(std::vector<Call> calls) {
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return a.begin_ns < b.begin_ns; });
  return calls;
}

// CLUSTER/TOPIC/PARTITION/OFFSET ends as the source does.
bool Names(const Call& call, int order, bool by_position) {
  if (!by_position) return call.record_id == fmt::format("o-{}", order);
  return call.record_id.ends_with("/" + call.source);
}

}  // namespace

Stream::Stream(const std::vector<TestRecord>& records) {
  for (const TestRecord& record : records) {
    const auto value = nlohmann::json::parse(record.value.value());
    const Position position{record.partition, record.offset};
    const int order = std::stoi(value.at("order_id").get<std::string>().substr(2));
    records_[position] = order;
    keys_[position] = record.key.value_or("");
    orders_.insert(order);
  }
}

int Stream::OrderAt(Position position) const {
  const auto at = records_.find(position);
  return at == records_.end() ? -1 : at->second;
}

std::string Stream::ChainOf(Position position, const std::string& order) const {
  const auto key = keys_.find(position);
  if (order == "partition" || key == keys_.end()) return std::to_string(position.partition);
  return fmt::format("{} {}", position.partition, key->second);
}

std::string Genuine(const std::vector<Effect>& effects, const Stream& stream, int factor) {
  Trouble trouble("effects of no record, or with a wrong amount");
  for (const Effect& effect : effects) {
    const bool right = stream.OrderAt(effect.position) == effect.order &&
                       effect.amount == std::int64_t{effect.order} * 7 % 1000 * factor;
    if (!right) {
      trouble.Add(fmt::format("o-{} of {}, amount {}", effect.order, Where(effect.position),
                              effect.amount));
    }
  }
  return trouble.Text();
}

std::string NoneLost(const std::vector<Effect>& effects, const Stream& stream) {
  std::set<int> seen;
  for (const Effect& effect : effects) seen.insert(effect.order);
  Trouble lost("lost orders");
  for (const int order : stream.orders()) {
    if (!seen.contains(order)) lost.Add(fmt::format("o-{}", order));
  }
  return lost.Text();
}

std::string OnceForEachOrder(const std::vector<Effect>& effects, const Stream& stream) {
  std::set<int> seen;
  Trouble doubled("orders with a further effect");
  for (const Effect& effect : effects) {
    if (seen.insert(effect.order).second) continue;
    doubled.Add(
        fmt::format("o-{} of {} by life {}", effect.order, Where(effect.position), effect.life));
  }
  return NoneLost(effects, stream) + doubled.Text();
}

std::string OnceForEachPosition(const std::vector<Effect>& effects, const Stream& stream) {
  std::set<Position> seen;
  Trouble doubled("positions with a further output");
  for (const Effect& effect : effects) {
    if (!seen.insert(effect.position).second) doubled.Add(Where(effect.position));
  }
  Trouble lost("positions without an output");
  for (const auto& [position, order] : stream.positions()) {
    if (!seen.contains(position)) lost.Add(Where(position));
  }
  return lost.Text() + doubled.Text();
}

std::string RepeatedOnlyBy(const std::vector<Effect>& effects, const std::set<int>& lives) {
  std::map<int, int> others;  // effects of lives that nothing happened to, by order
  for (const Effect& effect : effects) {
    if (!lives.contains(effect.life)) ++others[effect.order];
  }
  Trouble trouble("orders repeated by workers that nothing happened to");
  for (const auto& [order, count] : others) {
    if (count > 1) trouble.Add(fmt::format("o-{}", order));
  }
  return trouble.Text();
}

std::string InOrder(const std::vector<Effect>& effects, const Stream& stream,
                    const std::string& order) {
  std::set<Position> seen;
  std::map<std::string, Position> last;
  Trouble trouble(fmt::format("effects out of the order by {}", order));
  for (const Effect& effect : effects) {
    if (!seen.insert(effect.position).second) continue;
    const auto [at, first] = last.try_emplace(stream.ChainOf(effect.position, order));
    if (!first && effect.position < at->second) {
      trouble.Add(fmt::format("o-{} of {} by life {} after {}", effect.order,
                              Where(effect.position), effect.life, Where(at->second)));
    }
    at->second = effect.position;
  }
  return trouble.Text();
}

int Overtaken(const std::vector<Effect>& effects) {
  std::map<int, std::int64_t> last;
  int overtaken = 0;
  for (const Effect& effect : effects) {
    const auto [at, first] = last.try_emplace(effect.position.partition, -1);
    if (effect.position.offset < at->second) ++overtaken;
    at->second = std::max(at->second, effect.position.offset);
  }
  return overtaken;
}

std::string Genuine(const std::vector<Call>& calls, const Stream& stream, bool by_position) {
  Trouble trouble("calls whose id or source is not the record's, or without a token");
  for (const Call& call : calls) {
    const int order = stream.OrderAt(PositionOf(call.source));
    if (order < 0 || call.token <= 0 || !Names(call, order, by_position)) trouble.Add(Line(call));
  }
  return trouble.Text();
}

std::string EachCalled(const std::vector<Call>& calls, const Stream& stream, bool by_position) {
  std::set<int> orders;
  std::set<Position> positions;
  for (const Call& call : calls) {
    positions.insert(PositionOf(call.source));
    orders.insert(stream.OrderAt(PositionOf(call.source)));
  }
  Trouble trouble("records that the handler was never called for");
  for (const auto& [position, order] : stream.positions()) {
    const bool called = by_position ? positions.contains(position) : orders.contains(order);
    if (!called) trouble.Add(fmt::format("o-{} at {}", order, Where(position)));
  }
  return trouble.Text();
}

std::string Explained(const std::vector<Call>& calls, const std::set<int>& lost,
                      const std::set<int>& stale) {
  std::map<std::string, Call> before;
  Trouble trouble("further calls without a reason");
  for (const Call& call : Sorted(calls)) {
    const auto [at, first] = before.try_emplace(call.record_id, call);
    if (first) continue;
    const Call& last = at->second;
    const bool late =
        stale.contains(call.life) || (lost.contains(call.life) && call.token < last.token);
    if (!last.refused && !lost.contains(last.life) && !late) {
      trouble.Add(fmt::format("{} after {}", Line(call), Line(last)));
    }
    at->second = call;
  }
  return trouble.Text();
}

std::string Apart(const std::vector<Call>& calls, const Stream& stream, const std::string& order,
                  const std::set<int>& lost) {
  std::map<std::string, Call> before;  // the one that ends last
  Trouble trouble("calls at the same time as another of their chain");
  for (const Call& call : Sorted(calls)) {
    if (lost.contains(call.life)) continue;
    const auto [at, first] =
        before.try_emplace(stream.ChainOf(PositionOf(call.source), order), call);
    if (first) continue;
    if (call.begin_ns < at->second.end_ns) {
      trouble.Add(fmt::format("{} during {}", Line(call), Line(at->second)));
    }
    if (call.end_ns > at->second.end_ns) at->second = call;
  }
  return trouble.Text();
}

}  // namespace fencepost::testing
