// Lock nodes as deploy/operations/systemd.md has them, with an append-only file and the ACL file of
// make-acl, and workers under load over them, for what that document says of changing them.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/load.h"
#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {

class LockNodesTest : public PipelineTest {
 protected:
  static constexpr Deadline kLong{30'000};

  LockNodesTest() : orders_(Kafka().bootstrap(), name_, 4, 5, 0.05) {
    SetPasswords({"first"});
    for (int i = 0; i < 3; ++i) nodes_.push_back(EmptyNode());
    text_ = Text(4);
    text_.login = fmt::format(R"(, username: fencepost, password: "${{file:{}}}")",
                              folder_.Write("password", "first"));
  }

  // What make-acl prints for these passwords goes into the ACL file that all nodes read at start.
  void SetPasswords(const std::vector<std::string>& passwords) const {
    const Finished made = RunToEnd({.argv = {testing::SourcePath("deploy/redis/make-acl")},
                                    .stdin_text = fmt::format("{}\n", fmt::join(passwords, "\n")),
                                    .separate_stderr = true});
    ASSERT_EQ(made.exit_code, 0) << made.error_output;
    folder_.Write("users.acl", made.output);
  }
  std::unique_ptr<RedisServer> EmptyNode() const {
    return std::make_unique<RedisServer>(RedisServerOptions{.appendonly = true, .config = Acl()});
  }
  [[nodiscard]] std::vector<std::string> Acl() const {
    return {"aclfile " + folder_.File("users.acl")};
  }

  // The pipeline's file, as it is to be from now on.
  WorkerOptions Write() {
    std::vector<std::string> addresses;
    for (const auto& node : nodes_) addresses.push_back(node->address());
    text_.nodes = fmt::format("{}", fmt::join(addresses, ","));
    return Worker(text_);
  }
  [[nodiscard]] std::string file() const { return folder_.File(name_ + ".yaml"); }
  [[nodiscard]] Finished Tool(std::vector<std::string> words) const {
    return RunFencepost(std::move(words), {}, kLong);
  }
  void Start(int workers = 2) {
    team_.emplace(Write());
    const Finished init = Tool({"locks", "init", file(), "--if-missing", "--max-ttl", "3s"});
    ASSERT_EQ(init.exit_code, 0) << init.output << init.error_output;
    team_->Start(workers);
    load_.emplace(orders_, *table_);
    ExpectWorkGoesOn();
  }
  // By the file as it is now; as the document has it, until `fencepost health` says ready.
  WorkerProcess& Roll(WorkerProcess& worker) {
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
    WorkerProcess& next = team_->Add(worker.name());
    const std::string http = fmt::format("127.0.0.1:{}", next.port());
    EXPECT_TRUE(WaitUntil(kLong, "the worker to be ready",
                          [&] {
                            return Tool({"health", "--http", http, "--ready"}).exit_code == 0;
                          }))
        << next.Readiness() << team_->Tails();
    return next;
  }
  void ExpectWorkGoesOn() {
    const int before = table_->Count();
    EXPECT_TRUE(Effects(before + 100)) << team_->Tails();
  }
  // `fencepost locks status FILE`, until it says `ok` of all nodes.
  void ExpectAllOk() {
    Finished status;
    EXPECT_TRUE(WaitUntil(kLong, "all nodes to be ok",
                          [&] {
                            status = Tool({"locks", "status", file()});
                            return Times(status.output, " ok, store ") == nodes_.size();
                          }))
        << status.output << status.error_output;
  }
  // What the worker itself says of a node: it answers, and counts.
  void ExpectCounts(WorkerProcess& worker, const std::string& node) {
    EXPECT_TRUE(WaitUntil(kLong, "node " + node + " to count again",
                          [&] {
                            return worker.Now("fencepost_redis_node_up", {{"node", node}}) == 1 &&
                                   worker.Now("fencepost_redis_node_quarantined",
                                              {{"node", node}}) == 0;
                          }))
        << worker.Get("/status").body << worker.Log();
  }
  static std::size_t Times(const std::string& text, const std::string& part) {
    std::size_t times = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++times;
    return times;
  }
  // Effects that this worker wrote.
  [[nodiscard]] int WrittenBy(const std::string& worker) const {
    return std::stoi(
        table_->Value("SELECT count(*) FROM fencepost_ledger WHERE worker LIKE '" + worker + "%'"));
  }
  void ExpectTheTruth() {
    load_->Stop();
    ExpectAllDone(*team_, orders_.unique());
    team_->Look();
    EXPECT_EQ(team_->Sum("fencepost_invariant_violations_total"), 0);
  }

  Orders orders_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
  PipelineText text_;
  std::optional<WorkerTeam> team_;
  std::optional<Load> load_;
};

}  // namespace fencepost::testing
