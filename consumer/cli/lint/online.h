// What `lint --online` asks the servers that a pipeline names, before a worker does: whether a
// worker could start, read and write. Nothing is created, written or joined. Each part blocks for
// about its limit at most; they share nothing and run side by side.
#pragma once

#include <vector>

#include "config/loader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::cli {

// Of one pipeline that has options. Errors keep a worker from working; a warning is what it would
// get over by itself (a ledger to be created, one lock node of several away).
std::vector<config::Finding> LintOnline(const config::LoadResult& loaded, consumer::Millis limit);

// Its parts. Each finding stands at the key that named what was asked.
struct OnlineLint {
  const config::LoadResult& file;
  consumer::Millis limit;
  config::Findings findings;

  OnlineLint(const config::LoadResult& loaded, consumer::Millis most)
      : file(loaded), limit(most), findings(loaded.file) {}
  [[nodiscard]] const consumer::PipelineOptions& options() const { return *file.options; }
  void Error(std::string_view path, std::string message) {
    findings.Error(file.PlaceOf(path), "online", std::move(message));
  }
  void Warning(std::string_view path, std::string message) {
    findings.Warning(file.PlaceOf(path), "online", std::move(message));
  }
};
void LintBrokers(OnlineLint& lint);     // brokers, login, topics, group, dead letters
void LintRegistries(OnlineLint& lint);  // kafka.decode, output.kafka.encode
void LintDatabase(OnlineLint& lint);    // login, table, columns and types, rights, ledger
void LintLockNodes(OnlineLint& lint);   // logins, policies, clocks, the lock store

}  // namespace fencepost::cli
