// The faults by name: how each begins on the running system, and how it ends.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/fault/matrix/trial.h"

namespace fencepost::matrix {

// What undoes a fault, step by step, the last one first: when it is told to, else when this goes.
class Undo {
 public:
  Undo() = default;
  ~Undo();  // tells on stderr which step failed
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  // To be added before what it undoes is begun, which may fail halfway: so it must do no harm where
  // nothing was begun.
  void Add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // Throws what a step throws; the rest is undone when this goes.
  void Now();

 private:
  std::vector<std::function<void()>> steps_;
};

// What a fault may lay hands on.
struct Scene {
  System& system;
  Trial& trial;
  testing::WorkerProcess* worker;  // who is in the phase; null: any
  int node;                        // where it was seen, else -1
  std::mt19937_64 random;
  bool stopping = false;                // the worker was told to stop
  std::map<std::string, int> counts{};  // "kills", "freezes", …
  Undo undo{};

  [[nodiscard]] int Draw(int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  }
  // Feeds until one says that it is not ready, and this.
  void AwaitSaying(std::string_view why);
  // The worker in the phase, or one that runs.
  [[nodiscard]] testing::WorkerProcess& Worker();
  // SIGTERM, unless it has had one: a second one would mean something else.
  void Terminate(testing::WorkerProcess& one);
  // All workers stop, that is done when the group is empty, and they come back.
  void WhileStopped(const std::function<void()>& act);
  // So many neighbouring nodes, the one where the phase was seen first.
  [[nodiscard]] std::vector<std::size_t> Nodes(std::size_t count);
};

struct Fault {
  std::string name;
  std::chrono::milliseconds lasts;
  // Must not wait for workers: what they send is held while it runs. Undoing it may.
  std::function<void(Scene&)> begin;
  bool exec = false;                       // the trial's handler is a script
  bool batches = false;                    // its calls have several records
  bool replica = false;                    // the database has one
  bool small_disk = false;                 // the table is on one
  bool new_names = false;                  // who comes back has another name
  std::optional<DatabaseKind> database{};  // the one that it happens to; none: any
  // Of which pipelines all that a trial asks for holds then.
  std::vector<Pipeline> pipelines{Pipeline::kId, Pipeline::kPosition, Pipeline::kKafka};

  // Whether it can happen to such a pipeline.
  [[nodiscard]] bool Suits(Pipeline pipeline) const;
};

const std::vector<Fault>& AllFaults();

// The parts of the table.
void AddNodeFaults(std::vector<Fault>& faults);
void AddKafkaFaults(std::vector<Fault>& faults);
void AddTopicFaults(std::vector<Fault>& faults);
void AddDatabaseFaults(std::vector<Fault>& faults, DatabaseKind kind);
void AddSqliteFaults(std::vector<Fault>& faults);
// Killed, stopped and started, frozen for so long.
template <typename Server>
void AddServerFaults(std::vector<Fault>& faults, const std::string& name,
                     std::function<Server&(Scene&)> server, std::chrono::milliseconds frozen) {
  const auto add = [&](const char* what, std::chrono::milliseconds lasts, void (Server::*begin)(),
                       void (Server::*end)()) {
    faults.push_back({name + what, lasts, [server, begin, end](Scene& scene) {
                        Server& one = server(scene);
                        scene.undo.Add([&one, end] { (one.*end)(); });
                        (one.*begin)();
                      }});
  };
  add("-killed", std::chrono::milliseconds(500), &Server::Kill, &Server::Start);
  add("-restarted", std::chrono::milliseconds(500), &Server::Stop, &Server::Start);
  add("-frozen", frozen, &Server::Pause, &Server::Resume);
}
// Cut, black holes of both ways, delay, jitter, and connections that are forgotten.
void AddNetworkFaults(std::vector<Fault>& faults, const std::string& name,
                      std::function<std::vector<testing::TcpProxy*>(Scene&)> proxies);

}  // namespace fencepost::matrix
