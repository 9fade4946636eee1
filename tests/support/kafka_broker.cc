#include "tests/support/kafka_broker.h"
#include "tests/support/paths.h"

#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

constexpr Deadline kStartLimit = std::chrono::seconds(60);
constexpr Deadline kFetchLimit = std::chrono::minutes(10);

// The folder of jars, fetched by the script that `./dev test` uses too.
std::string Jars(const std::string& version) {
  const std::filesystem::path libs = CacheDir() / ("kafka-" + version) / "libs";
  if (std::filesystem::exists(libs / fmt::format("kafka_2.13-{}.jar", version)))
    return libs.string();
  ProcessOptions fetch;
  fetch.argv = {SourcePath("tests/support/fetch-kafka"), version};
  const Finished done = RunToEnd(std::move(fetch), kFetchLimit);
  if (done.exit_code != 0) throw std::runtime_error("fetch-kafka " + version + ": " + done.output);
  return libs.string();
}

std::string Java() {
  const char* home = std::getenv("JAVA_HOME");
  return home == nullptr ? "java" : std::string(home) + "/bin/java";
}

std::map<std::string, std::string> Properties(int port, int controller_port,
                                              const std::string& logs) {
  return {
      {"process.roles", "broker,controller"},
      {"node.id", "1"},
      {"controller.quorum.voters", fmt::format("1@127.0.0.1:{}", controller_port)},
      {"listeners",
       fmt::format("PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}", port, controller_port)},
      {"advertised.listeners", fmt::format("PLAINTEXT://127.0.0.1:{}", port)},
      {"controller.listener.names", "CONTROLLER"},
      {"listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"},
      {"log.dirs", logs},
      {"auto.create.topics.enable", "true"},  // as brokers come: nobody may ask for it unawares
      {"offsets.topic.replication.factor", "1"},
      {"offsets.topic.num.partitions", "4"},
      {"transaction.state.log.replication.factor", "1"},
      {"transaction.state.log.min.isr", "1"},
      {"transaction.state.log.num.partitions", "4"},
      {"share.coordinator.state.topic.replication.factor", "1"},
      {"share.coordinator.state.topic.min.isr", "1"},
      {"group.initial.rebalance.delay.ms", "0"},
      // After a crash the broker is let in again when the session of its former self has ended.
      {"broker.session.timeout.ms", "1500"},
      {"broker.heartbeat.interval.ms", "200"},
      {"controller.quorum.election.timeout.ms", "200"},
      {"controller.quorum.election.backoff.max.ms", "200"},
      {"group.min.session.timeout.ms", "1000"},
      {"transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"},
      {"log.flush.scheduler.interval.ms", "9223372036854775807"},
      {"log.segment.bytes", "67108864"},
      {"log.retention.ms", "-1"},  // tests write records with times of their own
      {"num.network.threads", "2"},
      {"num.io.threads", "4"},
  };
}

void AddSaslListener(std::map<std::string, std::string>& properties, int port,
                     const KafkaBrokerOptions& options) {
  const std::string listener = fmt::format(",SASL_PLAINTEXT://127.0.0.1:{}", port);
  properties["listeners"] += listener;
  properties["advertised.listeners"] += listener;
  properties["listener.security.protocol.map"] += ",SASL_PLAINTEXT:SASL_PLAINTEXT";
  properties["sasl.enabled.mechanisms"] = "PLAIN";
  properties["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = fmt::format(
      "org.apache.kafka.common.security.plain.PlainLoginModule required user_{}=\"{}\";",
      options.sasl_user, options.sasl_password);
}

void AddTlsListener(std::map<std::string, std::string>& properties, int port) {
  properties["listeners"] += fmt::format(",S://127.0.0.1:{}", port);
  properties["advertised.listeners"] += fmt::format(",S://127.0.0.1:{}", port);
  properties["listener.security.protocol.map"] += ",S:SASL_SSL";
}

void AddProxiedListener(std::map<std::string, std::string>& properties,
                        const KafkaBrokerOptions& options) {
  properties["listeners"] += fmt::format(",PROXIED://127.0.0.1:{}", options.proxied_port);
  properties["advertised.listeners"] += fmt::format(",PROXIED://127.0.0.1:{}", options.proxy_port);
  properties["listener.security.protocol.map"] += ",PROXIED:PLAINTEXT";
}

}  // namespace

KafkaBroker::KafkaBroker(const std::string& version)
    : KafkaBroker(KafkaBrokerOptions{.version = version}) {}

KafkaBroker::KafkaBroker(KafkaBrokerOptions options)
    : options_(std::move(options)), classpath_(Jars(options_.version) + "/*") {
  if (!options_.sasl_classes.empty()) Compile();
  for (int tries = 1;; ++tries) {
    port_ = FreePort();
    Format();
    try {
      Start();
      return;
    } catch (const std::runtime_error&) {
      if (tries == 3) throw;
      admin_.reset();  // the next has another port
    }
  }
}

std::string KafkaBroker::bootstrap() const { return fmt::format("127.0.0.1:{}", port_); }
std::string KafkaBroker::sasl_bootstrap() const { return fmt::format("127.0.0.1:{}", sasl_port_); }
pid_t KafkaBroker::pid() const { return process_ ? process_->pid() : -1; }

void KafkaBroker::Compile() {
  const std::string classes = dir_.File("classes");
  ProcessOptions compile;
  compile.argv = {Java() + "c", "-cp", classpath_, "-d", classes};
  for (const std::string& file : options_.sasl_classes) compile.argv.push_back(file);
  const Finished done = RunToEnd(std::move(compile), kStartLimit);
  if (done.exit_code != 0) throw std::runtime_error("javac: " + done.output);
  classpath_ = classes + ":" + classpath_;
}

void KafkaBroker::Format() {
  const std::string logs = dir_.File("logs");
  std::filesystem::remove_all(logs);
  std::string text;
  auto properties = Properties(port_, FreePort(), logs);
  if (!options_.sasl_user.empty()) {
    sasl_port_ = FreePort();
    AddSaslListener(properties, sasl_port_, options_);
  }
  if (!options_.sasl_classes.empty()) {
    sasl_port_ = FreePort();
    AddTlsListener(properties, sasl_port_);
  }
  if (options_.proxied_port != 0) AddProxiedListener(properties, options_);
  for (const auto& [name, value] : options_.config) properties[name] = value;
  for (const auto& [name, value] : properties) text += fmt::format("{}={}\n", name, value);
  const std::string file = dir_.Write("server.properties", text);
  const std::string cluster_id = fmt::format("{:0>22}", port_);  // 22 characters of base64
  ProcessOptions format;
  format.argv = {Java(),
                 "-Xshare:auto",
                 "-XX:TieredStopAtLevel=1",
                 "-cp",
                 classpath_,
                 "kafka.tools.StorageTool",
                 "format",
                 "-t",
                 cluster_id,
                 "-c",
                 file};
  const Finished done = RunToEnd(std::move(format), kStartLimit);
  if (done.exit_code != 0) throw std::runtime_error("kafka format: " + done.output);
}

void KafkaBroker::Start() {
  if (process_) return;
  if (StartOnce().empty()) return;
  const std::string output = StartOnce();
  if (output.empty()) return;
  throw std::runtime_error(
      fmt::format("kafka {} on port {} did not start:\n{}", options_.version, port_, output));
}

std::string KafkaBroker::StartOnce() {
  ProcessOptions broker;
  broker.argv = {Java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"};
  broker.argv.insert(broker.argv.end(), options_.java_options.begin(), options_.java_options.end());
  broker.argv.insert(broker.argv.end(),
                     {"-cp", classpath_, "kafka.Kafka", dir_.File("server.properties")});
  broker.directory = dir_.path().string();
  process_ = std::make_unique<Process>(std::move(broker));
  if (!admin_) admin_ = std::make_unique<KafkaAdmin>(bootstrap());
  bool died = false;
  const auto up = WaitUntil(kStartLimit, [&] {
    return (died = !process_->Running()) || admin_->Answers(std::chrono::milliseconds(300));
  });
  if (up && !died) return "";
  if (!died) {  // what its threads wait for
    process_->Kill(SIGQUIT);
    (void)WaitUntil(std::chrono::seconds(10),
                    [&] { return process_->Output().find("JNI global ref") != std::string::npos; });
  }
  const std::string output = process_->Output();
  process_.reset();
  return output.empty() ? "it said nothing" : output;
}

void KafkaBroker::Stop() {
  if (!process_) return;
  Resume();
  process_->Kill(SIGTERM);
  (void)process_->Wait(std::chrono::seconds(30));
  process_.reset();
}

void KafkaBroker::Kill() { process_.reset(); }

void KafkaBroker::Pause() {
  if (process_) process_->Kill(SIGSTOP);
}

void KafkaBroker::Resume() {
  if (process_) process_->Kill(SIGCONT);
}

}  // namespace fencepost::testing
