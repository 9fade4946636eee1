// The password of the lock nodes changed, and a store that stands changed to TLS
// (deploy/operations/security.md).
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/lock_nodes/lock_nodes_test.h"
#include "tests/support/certificates.h"

namespace fencepost::testing {
namespace {

using ::testing::HasSubstr;

class Password : public LockNodesTest {
 protected:
  // One after the other. Asked with this password before the next one: those that were restarted
  // say ok, as soon as they count.
  void RestartAll(const std::string& password, bool others_refuse_it) {
    const std::string ask = folder_.Write("ask", password);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i]->Stop();
      nodes_[i]->Start();
      Finished status;
      const auto all = [&] {
        status = Tool({"locks", "status", "--redis", text_.nodes, "--username", "fencepost",
                       "--password-file", ask});
        const std::size_t refused = Times(status.output, "WRONGPASS");
        return Times(status.output, " ok, store ") == (others_refuse_it ? i + 1 : nodes_.size()) &&
               refused == (others_refuse_it ? nodes_.size() - i - 1 : 0);
      };
      ASSERT_TRUE(WaitUntil(kLong, "the nodes to take the password", all))
          << status.output << status.error_output;
      for (WorkerProcess* worker : team_->Running()) {
        ExpectCounts(*worker, std::string(1, static_cast<char>('a' + i)));
      }
      ExpectWorkGoesOn();
    }
  }
};

TEST_F(Password, IsChangedNodeByNodeUnderLoadAndNoQuorumIsLostByIt) {
  Start();
  SetPasswords({"first", "second"});
  RestartAll("second", true);
  folder_.Write("password", "second");
  for (std::size_t i = 0; i < 2; ++i) Roll((*team_)[i]);
  SetPasswords({"second"});
  RestartAll("second", false);
  EXPECT_THAT(Tool({"locks", "status", "--redis", text_.nodes, "--username", "fencepost",
                    "--password-file", folder_.Write("ask", "first")})
                  .output,
              HasSubstr("WRONGPASS"));
  team_->Look();
  for (const char* reason : {"unreachable", "quarantined", "policy"}) {  // a slow answer is none
    EXPECT_EQ(team_->Sum("fencepost_quorum_failures_total", {{"reason", reason}}), 0) << reason;
  }
  ExpectTheTruth();
}

class Tls : public LockNodesTest {};

TEST_F(Tls, IsGivenToAStoreThatStandsWithAllWorkersStoppedAndTheNodesKeepWhatTheyKnew) {
  Start();
  load_->Stop();
  ASSERT_TRUE(AllCommitted()) << team_->Tails();
  ASSERT_EQ(team_->StopAll(), "");
  const Certificates made;
  for (const auto& node : nodes_) {
    node->Stop();
    node->Configure({Acl()[0], fmt::format("tls-port {}", node->port()), "port 0",
                     "tls-cert-file " + made.certificate(), "tls-key-file " + made.key(),
                     "tls-ca-cert-file " + made.ca(), "tls-auth-clients no"});
    node->Start();
  }
  text_.login += ", tls: {ca: " + made.ca() + "}";
  Write();
  const auto keys = [&] {  // of the nodes, by a command that changes nothing
    std::vector<std::string> all;
    const Finished status = Tool({"locks", "status", "--json", file()});
    for (const auto& node : nlohmann::json::parse(status.output).at("nodes")) {
      EXPECT_EQ(node.at("state"), "restarted") << status.output;
      all.push_back(node.at("keys").get<std::string>());
    }
    return all;
  };
  for (const std::string& count : keys()) {
    EXPECT_GE(std::stoi(count.substr(count.find('=') + 1)), orders_.unique()) << "marks are gone";
  }
  ExpectSays(team_->Add("worker-1"), "quarantine");  // it lasts for some seconds
  team_->Add("worker-2");
  load_.emplace(orders_, *table_);
  ExpectWorkGoesOn();
  ExpectAllOk();
  ExpectTheTruth();
}

}  // namespace
}  // namespace fencepost::testing
