#include "tests/bench/floors/floors.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::bench {
namespace {

constexpr const char* kCompareAndDelete =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

using Context = std::unique_ptr<redisContext, decltype(&redisFree)>;

class LockFloor {
 public:
  LockFloor(const std::vector<std::string>& addresses, int in_flight)
      : slots_(static_cast<std::size_t>(in_flight)), quorum_(addresses.size() / 2 + 1) {
    for (const std::string& address : addresses) Connect(address);
  }

  Figures Run(double seconds) {
    const auto start = now_ = Clock::now();
    const auto end =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) Begin(slot);
    while (now_ < end) Turn();
    const double took = SecondsSince(start);
    std::sort(took_ms_.begin(), took_ms_.end());
    return {{"cycles_per_s", static_cast<double>(took_ms_.size()) / took},
            {"p50_ms", At(0.5)},
            {"p99_ms", At(0.99)}};
  }

 private:
  struct Awaited {
    std::size_t slot;
    std::uint64_t step;
  };
  struct Node {
    Context context;
    std::deque<Awaited> awaited;
    bool unsent = false;
  };
  struct Slot {
    std::uint64_t step = 0;  // odd: SET is out; even: the script
    std::size_t answers = 0;
    std::string key, nonce;
    Clock::time_point begun;
  };

  void Connect(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    Context context(
        redisConnect(address.substr(0, colon).c_str(), std::stoi(address.substr(colon + 1))),
        &redisFree);
    if (!context || context->err != 0) throw std::runtime_error("lock floor: no " + address);
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(
        static_cast<redisReply*>(redisCommand(context.get(), "SCRIPT LOAD %s", kCompareAndDelete)),
        &freeReplyObject);
    if (!reply || reply->type != REDIS_REPLY_STRING) {
      throw std::runtime_error("lock floor: SCRIPT LOAD at " + address);
    }
    sha_.assign(reply->str, reply->len);
    fcntl(context->fd, F_SETFL, fcntl(context->fd, F_GETFL) | O_NONBLOCK);
    context->flags &= ~REDIS_BLOCK;
    context->reader->fn = nullptr;  // answers come as their type alone: nothing is allocated
    nodes_.push_back({.context = std::move(context), .awaited = {}});
  }

  void Begin(std::size_t at) {
    Slot& slot = slots_[at];
    slot.begun = now_;
    slot.key.clear();
    slot.nonce.clear();
    fmt::format_to(std::back_inserter(slot.key), "fencepost:{{floor}}:{:016x}-{}", run_, next_++);
    fmt::format_to(std::back_inserter(slot.nonce), "{:016x}{:016x}", random_(), random_());
    command_.clear();
    fmt::format_to(std::back_inserter(command_),
                   "*6\r\n$3\r\nSET\r\n${}\r\n{}\r\n$32\r\n{}\r\n$2\r\nNX\r\n$2\r\nPX\r\n"
                   "$5\r\n10000\r\n",
                   slot.key.size(), slot.key, slot.nonce);
    Send(at);
  }

  void Free(std::size_t at) {
    const Slot& slot = slots_[at];
    command_.clear();
    fmt::format_to(std::back_inserter(command_),
                   "*5\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n$1\r\n1\r\n${}\r\n{}\r\n$32\r\n{}\r\n",
                   sha_, slot.key.size(), slot.key, slot.nonce);
    Send(at);
  }

  void Send(std::size_t at) {
    Slot& slot = slots_[at];
    ++slot.step;
    slot.answers = 0;
    for (Node& node : nodes_) {
      redisAppendFormattedCommand(node.context.get(), command_.data(), command_.size());
      node.awaited.push_back({at, slot.step});
      node.unsent = true;
    }
  }

  // Everything gathered goes out in one send a node; then everything that has come is read.
  void Turn() {
    fds_.clear();
    for (Node& node : nodes_) {
      if (node.unsent) {
        int done = 0;
        if (redisBufferWrite(node.context.get(), &done) != REDIS_OK) Fail(node);
        node.unsent = done == 0;
      }
      fds_.push_back({.fd = node.context->fd,
                      .events = static_cast<short>(node.unsent ? POLLIN | POLLOUT : POLLIN),
                      .revents = 0});
    }
    poll(fds_.data(), fds_.size(), 100);
    now_ = Clock::now();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if ((fds_[i].revents & ~POLLOUT) != 0) Read(nodes_[i]);
    }
  }

  void Read(Node& node) {
    if (redisBufferRead(node.context.get()) != REDIS_OK) Fail(node);
    for (void* reply = nullptr;; reply = nullptr) {
      if (redisGetReplyFromReader(node.context.get(), &reply) != REDIS_OK) Fail(node);
      if (reply == nullptr) return;
      const Awaited awaited = node.awaited.front();
      node.awaited.pop_front();
      const auto type = reinterpret_cast<std::intptr_t>(reply);
      if (type != (awaited.step % 2 == 1 ? REDIS_REPLY_STATUS : REDIS_REPLY_INTEGER)) {
        throw std::runtime_error("lock floor: a node refused a fresh name");
      }
      OnAnswer(awaited);
    }
  }

  void OnAnswer(const Awaited& awaited) {
    Slot& slot = slots_[awaited.slot];
    if (slot.step != awaited.step || ++slot.answers < quorum_) return;
    if (slot.step % 2 == 1) {
      Free(awaited.slot);
      return;
    }
    took_ms_.push_back(std::chrono::duration<float, std::milli>(now_ - slot.begun).count());
    Begin(awaited.slot);
  }

  [[noreturn]] static void Fail(const Node& node) {
    throw std::runtime_error(std::string("lock floor: ") + node.context->errstr);
  }

  [[nodiscard]] double At(double quantile) const {
    if (took_ms_.empty()) return 0;
    return static_cast<double>(
        took_ms_[static_cast<std::size_t>(quantile * static_cast<double>(took_ms_.size() - 1))]);
  }

  std::vector<Slot> slots_;
  const std::size_t quorum_;
  std::mt19937_64 random_{std::random_device{}()};
  const std::uint64_t run_ = random_();
  std::vector<Node> nodes_;
  std::vector<pollfd> fds_;
  std::string sha_;
  fmt::memory_buffer command_;
  std::vector<float> took_ms_;
  std::uint64_t next_ = 0;
  Clock::time_point now_;
};

}  // namespace

Figures RunLockFloor(const std::vector<std::string>& addresses, int in_flight, double seconds) {
  return LockFloor(addresses, in_flight).Run(seconds);
}

}  // namespace fencepost::bench
