// The servers that let workers in by a secret, and where pipeline files name it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/mysql_server.h"
#include "tests/support/pipeline_servers.h"

namespace fencepost::testing {

// Each started once, when it is needed. All but the logins below are let in without a secret.
KafkaBroker& RotationKafka();  // a second listener takes SCRAM-SHA-256, and any token that lives
RedisServers& RotationNodes();
PostgresServer& RotationPostgres();  // everybody but `postgres` needs a password
MysqlServer& RotationMysql();

// One place where a worker needs a secret. Outlives the worker.
class Login {
 public:
  virtual ~Login() = default;
  // The pipeline needs it from now on; `secret`: what stands in its file.
  virtual void AddTo(PipelineText& text, const std::string& secret) const = 0;
  // The server takes these alone from now on, and who is in stays in. One that knows a single
  // secret takes the last of them.
  virtual void Take(const std::vector<std::string>& secrets) = 0;
  // Who goes on has to log in again.
  virtual void Disconnect() = 0;
  // It is tried, by another client.
  [[nodiscard]] virtual bool LetsIn(const std::string& secret) const = 0;
  // What a worker says that is refused.
  [[nodiscard]] virtual std::string refusal() const = 0;
  // Where the effects are.
  [[nodiscard]] virtual SqlServer& database() const { return RotationPostgres(); }
  // What stands in the topic for an order.
  [[nodiscard]] virtual std::string Value(int order) const { return Orders::Value(order); }
};

std::unique_ptr<Login> MakeRedisLogin();
std::unique_ptr<Login> MakePostgresLogin();
std::unique_ptr<Login> MakeMysqlLogin();
std::unique_ptr<Login> MakeKafkaScramLogin();
std::unique_ptr<Login> MakeKafkaTokenLogin();
std::unique_ptr<Login> MakeHandlerBearerLogin();
std::unique_ptr<Login> MakeHandlerBasicLogin();
std::unique_ptr<Login> MakeHandlerTokenLogin();
std::unique_ptr<Login> MakeRegistryBearerLogin();
std::unique_ptr<Login> MakeRegistryBasicLogin();

}  // namespace fencepost::testing
