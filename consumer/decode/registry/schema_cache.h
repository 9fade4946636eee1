// Schemas by their ids, asked for on a thread of its own. An id stands for one schema for ever, so
// what was found is kept. A registry that cannot be relied on is asked again, for ever, with pauses
// that grow. An id that it does not know is asked for a few times more, since a replica may lag
// behind what has just been registered; all such ids at the same time. The first answer counts for
// an id below one that it knows (ids grow), and within a minute after another that was not known to
// the end: records with such ids do not hold up the others. What it said is forgotten after a
// while. An id that Find has not been asked for in a while is dropped: its records have gone to
// another worker.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "consumer/decode/decoder.h"
#include "consumer/decode/registry/registry_client.h"

namespace fencepost::consumer {

struct CachePauses {
  std::chrono::milliseconds first{200};  // before the registry is asked again
  std::chrono::milliseconds most{10'000};
  std::chrono::milliseconds unknown{500};     // between questions for an id that it does not know
  int questions = 4;                          // for such an id
  std::chrono::milliseconds believe{60'000};  // its first answer, after such an id
  std::chrono::milliseconds forget{30'000};   // what it does not know
  std::chrono::milliseconds drop{30'000};     // an id that nobody asks for
};

class SchemaCache {
 public:
  explicit SchemaCache(RegistryOptions options, CachePauses pauses = {});
  ~SchemaCache();  // a question that is out is given up
  SchemaCache(const SchemaCache&) = delete;
  SchemaCache& operator=(const SchemaCache&) = delete;

  struct Known {
    SchemaKind kind = SchemaKind::kAvro;
    std::unique_ptr<Decoder> decoder;
    std::string problem;  // without a decoder: why there is none
  };
  // nullptr: not known yet; it has been asked for. Stays good until the next Find. One thread.
  const Known* Find(std::uint32_t id);
  // Any thread. Why the registry cannot be relied on, one line; empty: it can, as far as is known.
  [[nodiscard]] std::string Trouble() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Known known;
    std::optional<Clock::time_point> until;  // then it is asked for again
  };
  // An id that has been asked for, and not fetched.
  struct Wanted {
    int questions = 0;  // answered with: unknown
    Clock::time_point next;
    Clock::time_point asked;  // by Find, last
  };
  void Run();
  std::optional<std::uint32_t> NextId(std::uint32_t last);  // nullopt: stopping
  void Ask(std::uint32_t id);
  void OnUnknown(std::uint32_t id, const std::string& why);
  void Pause(std::chrono::milliseconds span);
  void Keep(std::uint32_t id, Entry entry);
  void Tell(std::string trouble);

  const CachePauses pauses_;
  RegistryClient client_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::uint32_t, Entry> fetched_;  // guarded: not seen by Find yet
  std::map<std::uint32_t, Wanted> wanted_;  // guarded
  std::string trouble_;                     // guarded
  bool stopping_ = false;                   // guarded
  std::map<std::uint32_t, Entry> known_;    // of the thread of Find
  Known impossible_;                        // likewise: of the last id that no registry can have
  // Of the thread that asks.
  std::chrono::milliseconds pause_ = pauses_.first;
  std::uint32_t newest_ = 0;         // id that it knows; 0: none
  Clock::time_point believe_until_;  // its first answer
  std::thread thread_;
};

}  // namespace fencepost::consumer
