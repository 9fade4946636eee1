#include "tests/fault/matrix/faults.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/support/kafka_group.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Manner;
using testing::TcpProxy;
using testing::WorkerProcess;

namespace {

constexpr seconds kStop{40};

void Kill(Scene& scene, const std::vector<WorkerProcess*>& workers) {
  for (WorkerProcess* worker : workers) {
    scene.trial.Forgive(*worker);
    worker->Kill();
    ++scene.counts["kills"];
    scene.undo.Add([&scene, name = worker->name()] { scene.trial.team().Add(name); });
  }
}

void KillForAnother(Scene& scene) {
  WorkerProcess& worker = scene.Worker();
  scene.trial.Forgive(worker);
  worker.Kill();
  ++scene.counts["kills"];
  scene.undo.Add([&scene] { scene.trial.team().Add(); });
}

WorkerProcess& Freeze(Scene& scene) {
  WorkerProcess& worker = scene.Worker();
  scene.undo.Add([&worker] { worker.Resume(); });
  worker.Pause();
  ++scene.counts["freezes"];
  return worker;
}

// False: who is frozen is inside a transaction of SQLite, and has the file until it goes on.
bool TakesWrites(Scene& scene) {
  if (scene.trial.database().kind() != Database::Kind::kSqlite) return true;
  try {
    const testing::TableLock lock(scene.trial.table());
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

// The others have all of its partitions meanwhile, and it wakes to what is done.
void FreezeUntilAllIsDone(Scene& scene) {
  WorkerProcess& frozen = Freeze(scene);
  if (scene.trial.team().Running().size() < 2) scene.trial.team().Add();
  scene.undo.Add([&scene, &frozen] {
    scene.trial.Hush(true);
    while (!testing::WaitUntil(seconds(60), [&] { return scene.trial.Finished(); })) {
      if (TakesWrites(scene)) throw std::runtime_error("a frozen worker holds the others up");
      frozen.Resume();
      (void)testing::WaitUntil(seconds(1), [] { return false; });
      frozen.Pause();
    }
    scene.trial.Hush(false);
  });
}

void Replace(Scene& scene, WorkerProcess& worker) {
  const auto code = worker.Wait(kStop);
  if (code != 0)
    throw std::runtime_error(
        fmt::format("SIGTERM: {} ended with {}", worker.name(), code.value_or(-1)));
  scene.trial.Forgive(worker);
  ++scene.counts["stops"];
  scene.trial.team().Add(worker.name());
}

// One after the other, each replaced before the next one goes.
void Roll(Scene& scene) {
  WorkerProcess& first = scene.Worker();
  scene.Terminate(first);
  scene.undo.Add([&scene, &first] {
    const auto running = scene.trial.team().Running();
    Replace(scene, first);
    for (WorkerProcess* worker : running) {
      if (worker == &first) continue;
      worker->Terminate();
      Replace(scene, *worker);
    }
  });
}

void Join(Scene& scene) {
  WorkerProcess& guest = scene.trial.team().Add();
  scene.undo.Add([&scene, &guest] {
    if (guest.Stop(kStop) != 0) throw std::runtime_error("the guest did not end with 0");
    scene.trial.Forgive(guest);
    ++scene.counts["stops"];
  });
}

// No descriptor more than it has, and its connections are cut.
void UseUpDescriptors(Scene& scene) {
  const pid_t pid = scene.Worker().pid();
  rlimit before{};
  prlimit(pid, RLIMIT_NOFILE, nullptr, &before);
  const rlimit none{4, before.rlim_max};
  scene.undo.Add([pid, before] { prlimit(pid, RLIMIT_NOFILE, &before, nullptr); });
  prlimit(pid, RLIMIT_NOFILE, &none, nullptr);
  if (scene.trial.HasDatabase()) scene.trial.database().proxy().Cut();
  scene.system.kafka_proxy().Cut();
  for (std::size_t i = 0; i < scene.system.nodes(); ++i) scene.system.node_proxy(i).Cut();
}

void AddWorkerFaults(std::vector<Fault>& faults) {
  faults.push_back(
      {"worker-kill", seconds(1), [](Scene& scene) { Kill(scene, {&scene.Worker()}); }});
  faults.push_back({"worker-kill-all", seconds(1),
                    [](Scene& scene) { Kill(scene, scene.trial.team().Running()); }});
  faults.push_back({.name = "worker-kill-another-name",
                    .lasts = seconds(1),
                    .begin = KillForAnother,
                    .new_names = true});
  faults.push_back({"worker-freeze-blink", milliseconds(300), Freeze});
  faults.push_back({"worker-freeze-past-lease", kTtl + milliseconds(700), Freeze});
  faults.push_back({"worker-freeze-past-session", kSession + kTtl, Freeze});
  faults.push_back({.name = "worker-freeze-until-all-is-done",
                    .lasts = kSession + kTtl,
                    .begin = FreezeUntilAllIsDone,
                    .pipelines = {Pipeline::kId, Pipeline::kPosition}});
  faults.push_back({"worker-rolling-stop", milliseconds(0), Roll});
  faults.push_back({"worker-joins-and-leaves", seconds(1), Join});
  faults.push_back({"worker-descriptors-used-up", seconds(2), UseUpDescriptors});
}

void AddHandlerFaults(std::vector<Fault>& faults) {
  const auto add = [&](const std::string& name, Manner manner, bool exec, bool batches = false) {
    const auto begin = [manner](Scene& scene) {
      scene.undo.Add([&scene] { scene.trial.receiver()->Behave(Manner::kGood); });
      if (manner == Manner::kHuge) scene.undo.Add([&scene] { scene.trial.NoteCommitted(); });
      scene.trial.receiver()->Behave(manner);
    };
    faults.push_back({name, milliseconds(1500), begin, exec, batches});
  };
  add("http-500", Manner::kError, false);
  add("http-slow", Manner::kSlow, false);
  add("http-cut-in-the-answer", Manner::kCut, false);
  add("http-huge", Manner::kHuge, false);
  add("http-endless", Manner::kEndless, false);
  add("http-half-a-batch", Manner::kHalf, false, true);
  add("http-id-twice-in-a-batch", Manner::kTwice, false, true);
  add("http-cut-in-a-batch", Manner::kCut, false, true);
  add("exec-error", Manner::kError, true);
  add("exec-garbage", Manner::kGarbage, true);
  add("exec-exit", Manner::kCut, true);
  add("exec-exit-amid-a-batch", Manner::kCut, true, true);
  AddNetworkFaults(faults, "http", [](Scene& scene) {
    return std::vector<TcpProxy*>{scene.trial.receiver()->proxy()};
  });
}

}  // namespace

Undo::~Undo() {
  while (!steps_.empty()) {
    try {
      Now();
    } catch (const std::exception& error) {
      (void)std::fprintf(stderr, "a fault is not undone: %s\n", error.what());
    }
  }
}

void Undo::Now() {
  while (!steps_.empty()) {
    const auto step = std::move(steps_.back());
    steps_.pop_back();
    step();
  }
}

WorkerProcess& Scene::Worker() {
  if (worker != nullptr && worker->Running()) return *worker;
  const auto running = trial.team().Running();
  if (running.empty()) throw std::runtime_error("no worker runs");
  return *running.at(static_cast<std::size_t>(Draw(static_cast<int>(running.size()))));
}

void Scene::AwaitSaying(std::string_view why) {
  const bool said = trial.FeedUntil(seconds(20), [&] {
    const auto running = trial.team().Running();
    return std::any_of(running.begin(), running.end(), [&](WorkerProcess* one) {
      return one->Readiness().find(why) != std::string::npos;
    });
  });
  if (!said) throw std::runtime_error(fmt::format("no worker says '{}'", why));
}

void Scene::Terminate(WorkerProcess& one) {
  if (!stopping || &one != worker) one.Terminate();
}

void Scene::WhileStopped(const std::function<void()>& act) {
  const auto workers = trial.team().Running();
  for (WorkerProcess* one : workers) Terminate(*one);
  undo.Add([this, act, workers] {
    for (WorkerProcess* one : workers) {
      if (one->Wait(kStop) != 0) throw std::runtime_error("a worker did not end with 0");
      trial.Forgive(*one);
      ++counts["stops"];
    }
    testing::RequireWithin(seconds(60), "the group to be empty", [&] {
      return testing::LookAtGroup(system.kafka().bootstrap(), trial.group()).members.empty();
    });
    act();
    for (WorkerProcess* one : workers) trial.team().Add(one->name());
  });
}

std::vector<std::size_t> Scene::Nodes(std::size_t count) {
  const std::size_t all = system.nodes();
  const std::size_t first = node >= 0 ? static_cast<std::size_t>(node)
                                      : static_cast<std::size_t>(Draw(static_cast<int>(all)));
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back((first + i) % all);
  return chosen;
}

void AddNetworkFaults(std::vector<Fault>& faults, const std::string& name,
                      std::function<std::vector<TcpProxy*>(Scene&)> proxies) {
  const auto add = [&](const char* what, milliseconds lasts, std::function<void(TcpProxy&)> begin) {
    faults.push_back({name + "-" + what, lasts, [proxies, begin](Scene& scene) {
                        for (TcpProxy* proxy : proxies(scene)) {
                          scene.undo.Add([proxy] { proxy->Restore(); });
                          begin(*proxy);
                        }
                      }});
  };
  add("refused", milliseconds(1500), [](TcpProxy& proxy) { proxy.Refuse(); });
  add("cut", milliseconds(500), [](TcpProxy& proxy) { proxy.Cut(); });
  add("requests-lost", seconds(2),
      [](TcpProxy& proxy) { proxy.BlackHole(TcpProxy::Way::kToServer); });
  add("answers-lost", seconds(2),
      [](TcpProxy& proxy) { proxy.BlackHole(TcpProxy::Way::kToClient); });
  add("delay", seconds(2), [](TcpProxy& proxy) { proxy.Delay(milliseconds(120)); });
  add("jitter", seconds(2), [](TcpProxy& proxy) { proxy.Jitter(milliseconds(250)); });
  add("half-open", milliseconds(500), [](TcpProxy& proxy) { proxy.Forget(); });
}

bool Fault::Suits(Pipeline pipeline) const {
  return std::find(pipelines.begin(), pipelines.end(), pipeline) != pipelines.end();
}

const std::vector<Fault>& AllFaults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> faults;
    AddWorkerFaults(faults);
    AddNodeFaults(faults);
    AddKafkaFaults(faults);
    AddTopicFaults(faults);
    AddDatabaseFaults(faults, DatabaseKind::kPostgres);
    AddHandlerFaults(faults);
    AddDatabaseFaults(faults, DatabaseKind::kMariadb);
    AddSqliteFaults(faults);
    return faults;
  }();
  return all;
}

}  // namespace fencepost::matrix
