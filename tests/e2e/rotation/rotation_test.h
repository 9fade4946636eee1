// A worker under load, one secret of which is in a file that changes.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/e2e/rotation/login.h"
#include "tests/support/load.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {

class RotationTest : public ::testing::Test {
 protected:
  static constexpr Deadline kLong{90'000};
  // What no worker may say; and two more that have it in them.
  static constexpr const char* kSecret = "s3cret";
  static constexpr const char* kFirst = "s3cret-first";
  static constexpr const char* kSecond = "s3cret-second";

  RotationTest() {
    static int number = 0;
    name_ = fmt::format("rotated-{}", ++number);
  }

  [[nodiscard]] std::string secret_file() const { return folder_.File("secret"); }
  // As it stands in a pipeline file.
  [[nodiscard]] std::string Secret() const { return "{file: " + secret_file() + "}"; }
  // In one step, as Kubernetes does it: nobody reads a half.
  void WriteSecret(const std::string& text) const {
    std::filesystem::rename(folder_.Write("next", text), secret_file());
  }

  // What the worker has logged, and why it is not ready now.
  [[nodiscard]] std::vector<std::string> Said() const {
    std::vector<std::string> lines;
    std::istringstream text(worker_->Log() + worker_->Readiness());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  // Within the limit, and not as a warning of the pipeline's file.
  void ExpectSaid(const std::string& part) {
    const auto said = [&] {
      return std::ranges::any_of(Said(), [&](const std::string& line) {
        return line.find(part) != line.npos && line.find("file_warning") == line.npos;
      });
    };
    EXPECT_TRUE(WaitUntil(kLong, "the worker to say '" + part + "'", said))
        << worker_->Readiness() << worker_->Log();
  }

  // A pipeline of orders with their effects in that server.
  void MakePipeline(SqlServer& database) {
    table_.emplace(database, name_);
    RotationKafka().CreateTopic(name_, kPartitions);
    text_.name = text_.topic = name_;
    text_.brokers = RotationKafka().bootstrap();
    text_.nodes = RotationNodes().list();
    text_.dsn = table_->dsn();
    text_.mysql = table_->mysql();
  }
  // The worker, and orders in small steps until the test ends.
  void Start() {
    file_ = folder_.Write(name_ + ".yaml", text_.Yaml());
    worker_.emplace(WorkerOptions{.files = {file_}, .name = "worker-1"});
    load_.emplace([this] { Produce(20); }, [this] { return table_->Count() == produced_; });
  }
  void ExpectWorkGoesOn() {
    const int before = table_->Count();
    EXPECT_TRUE(
        WaitUntil(kLong, "a hundred effects more", [&] { return table_->Count() >= before + 100; }))
        << worker_->Readiness() << worker_->Log();
  }
  // Each order took effect once, and it is still the worker that was started, which a bad record
  // would have ended; it has said nothing that is secret.
  void ExpectTheTruth() {
    load_->Stop();
    EXPECT_TRUE(WaitUntil(kLong, "the group's offsets to be the ends of the partitions",
                          [&] { return CommittedToTheEnd(RotationKafka(), name_, name_); }))
        << worker_->Readiness() << worker_->Log();
    const std::string said = worker_->Get("/status").body;
    EXPECT_EQ(worker_->Stop(), 0) << worker_->Log();
    EXPECT_EQ(table_->Audit(name_, produced_), "");
    EXPECT_THAT(said + worker_->Log() + worker_->Output(),
                ::testing::Not(::testing::HasSubstr(kSecret)));
  }

  std::string name_;  // of the pipeline, its group, its topic and its database
  TempDir folder_;
  std::string file_;  // of the pipeline, once it is started
  PipelineText text_;
  std::function<std::string(int)> value_ = &Orders::Value;
  std::optional<EffectsTable> table_;
  std::atomic<int> produced_ = 0;
  std::optional<WorkerProcess> worker_;
  std::optional<Load> load_;

 private:
  static constexpr int kPartitions = 4;

  void Produce(int orders) {
    TestProducer producer(RotationKafka().bootstrap(), "", {{"linger.ms", "5"}});
    for (int i = 0; i < orders; ++i) {
      const int order = produced_++;
      producer.Send(name_, order % kPartitions, fmt::format("customer-{}", order % 97),
                    value_(order));
    }
    producer.Flush();
  }
};

}  // namespace fencepost::testing
