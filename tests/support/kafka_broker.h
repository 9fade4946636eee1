// A real Kafka broker (Apache Kafka on the JVM, KRaft, one node).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace fencepost::testing {

struct KafkaBrokerOptions {
  std::string version = "4.2.0";  // or 3.9.1; jars that are missing are fetched into the cache
  std::map<std::string, std::string> config{};  // more broker properties, or other values for ours
  std::string sasl_user{};  // given: a second listener takes this user alone, by SASL PLAIN
  std::string sasl_password{};
  // Given: a listener S that is SASL_SSL, of which `config` says the rest (listener.name.s.…).
  // These files of Java are compiled for it.
  std::vector<std::string> sasl_classes{};
  std::vector<std::string> java_options{};  // of its process: "-Dname=value"
  // Given: a third listener on the first port, whose clients are told to come to the second one,
  // where a proxy is.
  int proxied_port = 0;
  int proxy_port = 0;
};

// The constructor returns when metadata requests are answered. It creates topics for clients that
// ask for that; sessions as short as 1 s and transaction timeouts of any length are allowed.
// Address and data stay the same over restarts.
class KafkaBroker {
 public:
  explicit KafkaBroker(KafkaBrokerOptions options = {});
  explicit KafkaBroker(const std::string& version);

  [[nodiscard]] std::string bootstrap() const;       // 127.0.0.1:PORT
  [[nodiscard]] std::string sasl_bootstrap() const;  // with sasl_user or sasl_classes
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] KafkaAdmin& admin() { return *admin_; }
  [[nodiscard]] pid_t pid() const;  // -1 when stopped

  void Start();
  void Stop();  // SIGTERM, and waits
  void Kill();  // SIGKILL, and waits
  void Pause();
  void Resume();

  // Short for admin().
  void CreateTopic(const std::string& topic, int partitions) {
    admin_->CreateTopic(topic, partitions);
  }

 private:
  void Compile();
  void Format();
  // Empty, or what it said: it is not up within a minute.
  std::string StartOnce();

  KafkaBrokerOptions options_;
  std::string classpath_;
  TempDir dir_;
  int port_ = 0;
  int sasl_port_ = 0;
  std::unique_ptr<Process> process_;
  std::unique_ptr<KafkaAdmin> admin_;
};

}  // namespace fencepost::testing
