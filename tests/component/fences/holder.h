// Holders of a lock in processes of their own, one of them frozen past its time.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "locking/quorum_lock/quorum_lock.h"
#include "tests/support/servers.h"

namespace fencepost::fences {

inline constexpr locking::Millis kTtl{1'000};
inline constexpr locking::Millis kWait{20'000};

inline locking::QuorumLock::Options HolderOptions(const std::vector<std::string>& nodes) {
  locking::QuorumLock::Options options;
  options.redis.nodes = nodes;
  options.lock.ttl = kTtl;
  options.lock.min_validity = locking::Millis(100);
  options.lock.node_timeout = locking::Millis(1'000);
  options.name_space = "fences";
  return options;
}

// A process that holds `name` and runs a shell command when it is told to (main.cc).
class Holder {
 public:
  Holder(const std::string& nodes, const std::string& name, const std::string& command) {
    testing::ProcessOptions options;
    options.argv = {std::filesystem::read_symlink("/proc/self/exe").string(),
                    "holder",
                    nodes,
                    name,
                    dir_.File("go"),
                    command};
    process_ = std::make_unique<testing::Process>(std::move(options));
    testing::RequireWithin(std::chrono::seconds(30), "the lease", [this] {
      return process_->Output().find(" held\n") != std::string::npos || !process_->Running();
    });
    token_ = process_->Output().substr(0, process_->Output().find(' '));
    if (!process_->Running()) throw std::runtime_error("no holder: " + process_->Output());
  }

  [[nodiscard]] const std::string& token() const { return token_; }
  void Freeze() { process_->Kill(SIGSTOP); }
  void Thaw() { process_->Kill(SIGCONT); }
  // Runs the command to its end: its exit code.
  int Write() {
    (void)dir_.Write("go", "");
    const auto code = process_->Wait(std::chrono::seconds(30));
    if (!code) throw std::runtime_error("the command does not end: " + process_->Output());
    return *code;
  }
  // What the command printed, stderr included.
  [[nodiscard]] std::string Said() const {
    const std::string all = process_->Output();
    return all.substr(all.find('\n') + 1);
  }

 private:
  testing::TempDir dir_;
  std::unique_ptr<testing::Process> process_;
  std::string token_;
};

// Three lock nodes with a store that counts.
class HolderTest : public ::testing::Test {
 protected:
  HolderTest() {
    auto options = HolderOptions(nodes_.addresses());
    options.creation = locking::StoreCreation::kImmediate;
    const auto lock = locking::QuorumLock::Connect(options);
    if (!lock) throw std::runtime_error(lock.error().Line());
    const auto ready = (*lock)->WaitReady(kWait);
    if (!ready) throw std::runtime_error(ready.error().Line());
    testing::RequireWithin(kWait, "the lock store", [this] {
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (!nodes_[node].Command({"GET", "fencepost::sentinel"}).starts_with("C")) return false;
      }
      return true;
    });
  }

  // The first holder is frozen past its ttl; the second takes over and writes; the first one thaws
  // and writes. Returns the first one, whose command has ended with `late_code`.
  struct Late {
    std::unique_ptr<Holder> holder;
    int code = 0;
    std::string winner;  // token of the second
  };
  Late WriteLate(const std::string& first, const std::string& second) {
    Late late;
    late.holder = std::make_unique<Holder>(nodes_.list(), "account-7", first);
    late.holder->Freeze();
    Holder next(nodes_.list(), "account-7", second);
    EXPECT_GT(std::stoull(next.token()), std::stoull(late.holder->token()));
    EXPECT_EQ(next.Write(), 0) << next.Said();
    late.winner = next.token();
    late.holder->Thaw();
    late.code = late.holder->Write();
    return late;
  }

  testing::RedisServers nodes_{3};
};

}  // namespace fencepost::fences
