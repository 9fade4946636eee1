#include "tests/model/simulator/sim_handler.h"

#include <utility>

#include <fmt/format.h>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::HandlerCall;
using consumer::HandlerFailure;
using consumer::HandlerResult;
using consumer::Order;

namespace {

HandlerResult Failed(const char* error_class, bool retry) {
  return tl::unexpected(HandlerFailure{
      .error_class = error_class, .text = "drawn", .retry = retry, .retry_after = {}});
}

}  // namespace

SimHandler::Out SimHandler::Describe(const HandlerCall& call) const {
  Out out{.source = world_.broker.SourceOf(call.where, call.record),
          .epoch = call.record.epoch,
          .chain = {}};
  const Order order = world_.plan.flow.order;
  if (order == Order::kNone || !world_.plan.flow.handler.outside()) return out;
  if (order == Order::kKey && !call.record.key) return out;
  out.chain = fmt::format("{}/{}", call.record.partition, out.epoch);
  if (order == Order::kKey) out.chain += fmt::format("/{}", *call.record.key);
  return out;
}

HandlerResult SimHandler::Draw(const HandlerCall& call) {
  Random& random = world_.random;
  if (world_.faults().handler_out()) {
    world_.Count("calls in an outage");
    return Failed("503", true);
  }
  if (world_.Strikes(Fault::kHandlerFailures, world_.plan.handler_failures)) {
    return Failed(random.Chance(500) ? "503" : "500", true);
  }
  if (random.Chance(world_.plan.handler_refusals)) return Failed("422", random.Chance(500));
  if (world_.MakesNoRow(call.record_id, call.record.value.value_or(""))) {
    world_.Count("handled without a row");
    return consumer::HandlerValues{};
  }
  return consumer::HandlerValues{"made"};
}

void SimHandler::Call(const HandlerCall& call) {
  out_.emplace(call.id, Describe(call));
  world_.Note("w{} call {} of {} attempt {}", worker_.process().index, call.id, call.record_id,
              call.attempt);
  Random& random = world_.random;
  const bool hangs = world_.Strikes(Fault::kHandlerHangs, world_.plan.handler_hangs);
  const Nanos takes = hangs ? random.Time(world_.plan.lock.ttl, 3 * Nanos(world_.plan.lock.ttl))
                            : random.Time(microseconds(200), world_.plan.handler_takes);
  HandlerResult result = Draw(call);
  if (hangs) world_.Count("handler hangs");
  worker_.process().Later(Process::kHandler, std::min<Nanos>(takes, call.timeout),
                          [this, id = call.id, late = takes > Nanos(call.timeout),
                           result = std::move(result)]() mutable {
                            Answer(id, late ? Failed("timeout", true) : std::move(result));
                          });
}

void SimHandler::Cancel(std::uint64_t id) {
  world_.Count("calls called off");
  worker_.process().Later(Process::kHandler, world_.random.Time(Nanos(0), Millis(400)),
                          [this, id] { Answer(id, Failed("cancelled", true)); });
}

void SimHandler::Answer(std::uint64_t id, HandlerResult result) {
  if (out_.erase(id) == 0) return;
  world_.Note("w{} call {} answered: {}", worker_.process().index, id,
              result ? "made" : result.error().error_class);
  worker_.core().OnHandled({.id = id, .result = std::move(result)}, worker_.process().now());
  worker_.Act();
}

}  // namespace fencepost::simulator
