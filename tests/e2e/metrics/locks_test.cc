// The series of the lock and of its invariants, moved by what is written to the nodes by hand.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/e2e/metrics/metrics_test.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class LockMetrics : public MetricsTest {
 protected:
  PipelineText Text() {
    PipelineText text = MetricsTest::Text(1);
    text.more = Http() + "processing: {timeout: 30s, revoke_drain: 31s}\n";
    return text;
  }
};

TEST_F(LockMetrics, ContentionTakeoverStaleAndSkipsByTheLedger) {
  WorkerProcess worker(Worker(Text()));
  // Another's, until it was asked for: contended, and then a takeover.
  Put(Nodes(), "o-held", HeldBy(TokenAt(-1000ms), 60s));
  SendOrder(0, "o-held", "a");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "contended"}});
  ExpectMoves(worker, "retries_total", {{"stage", "lock"}});
  Put(Nodes(), "o-held", HeldBy(TokenAt(-1000ms), -1ms));
  ExpectMoves(worker, "lock_takeovers_total");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "acquired"}});
  ExpectMoves(worker, "lock_wait_duration_seconds_count");
  // A floor that is a second ahead: refused by the fence of the nodes, lifted over, granted. Where
  // the record is later than that, another one tries.
  const Labels stale = {{"result", "stale"}};
  int sent = 0;
  EXPECT_TRUE(WaitUntil(
      60s,
      [&] {
        if (worker.Now("fencepost_records_in_flight") == 0) {
          const std::string id = fmt::format("o-floor-{}", sent++);
          Put(Nodes(), id, FreeValue(TokenAt(1500ms)));
          SendOrder(0, id, "b");
        }
        return worker.Now("fencepost_lock_acquisitions_total", stale) > 0;
      },
      "a token below a floor"))
      << worker.Readiness();
  ExpectMoves(worker, "fencing_rejections_total", {{"side", "redis"}});
  ExpectMoves(worker, "records_processed_total", {{"result", "done"}}, 1);
  // The same once more: its name is held by the lease that was left behind, and then free.
  SendOrder(0, "o-held", "a");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "done"}});
  ExpectMoves(worker, "dedupe_skips_total", {{"source", "ledger"}});
  Remove(Nodes(), "o-held");
  SendOrder(0, "o-held", "a");
  ExpectMoves(worker, "dedupe_skips_total", {{"source", "ledger"}}, 1);
  EXPECT_EQ(worker.Now("fencepost_invariant_violations_total"), 0);
}

TEST_F(LockMetrics, ALeaseTakenAwayByHandIsADoubleGrant) {
  HangOn(0, "o-1");
  WorkerProcess worker(Worker(Text()));
  SendOrder(0, "o-1", "a");
  ASSERT_TRUE(Called("o-1")) << worker.Log();
  ExpectMoves(worker, "locks_held");
  ExpectMoves(worker, "lock_extensions_total", {{"result", "extended"}});
  ExpectMoves(worker, "redis_command_duration_seconds_count", {{"command", "extend"}});
  Put(Nodes(), "o-1", HeldBy(TokenAt(0ms), 4000ms));
  ExpectMoves(worker, "lock_losses_total", {{"reason", "stolen"}});
  ExpectMoves(worker, "lock_extensions_total", {{"result", "lost"}});
  ExpectViolation(worker, "double_grant", "o-1");
  service_.Release();
}

TEST_F(LockMetrics, ANodesForgottenFloorIsATokenThatRegressed) {
  WorkerProcess worker(Worker(Text()));
  Put(Nodes(), "o-1", HeldBy(TokenAt(3600s), 3600s));
  SendOrder(0, "o-1", "a");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "contended"}});
  Remove(Nodes(), "o-1");
  ExpectViolation(worker, "token_regressed", "o-1");
}

// Another has written the effect, under a later token, while the handler worked.
TEST_F(LockMetrics, TheOutputRefusesWhoComesTooLateAndIsTriedAgainWhenItFails) {
  WorkerProcess worker(Worker(Text()));
  SendOrder(0, "o-1", "a");
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  for (const char* series :
       {"handler_duration_seconds_count", "output_write_duration_seconds_count",
        "output_batch_size_count", "record_end_to_end_duration_seconds_count",
        "last_progress_timestamp_seconds", "offset_commit_duration_seconds_count",
        "lock_hold_duration_seconds_count", "lock_validity_remaining_seconds_count",
        "lock_batch_size_count", "lock_acquire_duration_seconds_count",
        "fencing_tokens_issued_total"}) {
    ExpectMoves(worker, series);
  }
  table_->Exec("CREATE TABLE kept AS SELECT * FROM fencepost_ledger");
  table_->Exec("DELETE FROM fencepost_ledger");
  Remove(Nodes(), "o-1");
  HangOn(1, "o-1");
  SendOrder(0, "o-1", "a");
  ASSERT_TRUE(Called("o-1", 2)) << worker.Log();
  table_->Exec(
      "INSERT INTO fencepost_ledger (pipeline, record_id, token, worker, source, content_crc,"
      " completed_at) SELECT pipeline, record_id, 9000000000000000000, 'other', 'elsewhere/0/1',"
      " content_crc, completed_at FROM kept");
  service_.Release();
  ExpectMoves(worker, "fencing_rejections_total", {{"side", "output"}});
  ExpectMoves(worker, "records_processed_total", {{"result", "skipped"}});
  EXPECT_EQ(table_->Count(), 1);

  table_->Exec("ALTER TABLE effects RENAME TO elsewhere");
  SendOrder(0, "o-2", "a");
  ExpectMoves(worker, "retries_total", {{"stage", "output"}});
  table_->Exec("ALTER TABLE elsewhere RENAME TO effects");
  EXPECT_TRUE(Effects(2)) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr(R"("event":"fenced")"));
}

TEST_F(LockMetrics, WithoutALedgerADuplicateIsKnownByItsMark) {
  PipelineText text = MetricsTest::Text(1);
  text.guarantee = "at-least-once";
  text.output = "output: {file: {path: " + folder_.File("effects.jsonl") + "}}\n";
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "a");
  ExpectMoves(worker, "redis_command_duration_seconds_count", {{"command", "done"}});
  SendOrder(0, "o-1", "a");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "done"}});
  ExpectMoves(worker, "dedupe_skips_total", {{"source", "lock"}});
}

// Without a ledger nothing but the lease speaks for a write: here it is another's before the output
// takes the effect.
TEST_F(LockMetrics, AnEffectUnderALostLeaseIsToldWhereNoLedgerDecides) {
  const std::string path = folder_.File("effects.jsonl");
  PipelineText text = MetricsTest::Text(1);
  text.guarantee = "at-least-once";
  text.output = "output: {file: {path: " + path + "}}\n";
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(WaitUntil(
      60s, [&] { return worker.Ready(); }, "the worker to be ready"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  SendOrder(0, "o-1", "a");
  ExpectMoves(worker, "retries_total", {{"stage", "output"}});
  Put(Nodes(), "o-1", HeldBy(TokenAt(0ms), 60s));
  ExpectMoves(worker, "lock_losses_total", {{"reason", "stolen"}});
  EXPECT_EQ(worker.Now("fencepost_invariant_violations_total", {{"invariant", "lease_after_loss"}}),
            0);
  std::filesystem::remove(path);
  ExpectViolation(worker, "lease_after_loss", "o-1");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
}

// Frozen for longer than its leases: in the handler, before it, and in the write.
TEST_F(LockMetrics, AFrozenWorkersLeasesExpireByWhereTheyWere) {
  HangOn(0, "o-1");
  PipelineText text = MetricsTest::Text(1);
  text.more = Http() + "processing: {timeout: 30s, revoke_drain: 31s, concurrency: 1}\n";
  text.session_ms = 30'000;  // the freeze costs the leases, not the membership
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "a");
  ASSERT_TRUE(Called("o-1")) << worker.Log();
  SendOrder(0, "o-next", "z");
  ASSERT_TRUE(Shows(worker, "fencepost_locks_held", {}, 2)) << worker.Log();
  const auto freeze = [&] {
    worker.Pause();
    const auto since = std::chrono::steady_clock::now();
    ASSERT_TRUE(WaitUntil(10s, [&] { return std::chrono::steady_clock::now() - since > 3500ms; }));
  };
  freeze();
  worker.Resume();
  ExpectMoves(worker, "lock_expirations_total", {{"phase", "handling"}});
  ExpectMoves(worker, "lock_expirations_total", {{"phase", "waiting"}});
  ExpectMoves(worker, "lock_losses_total", {{"reason", "expired"}});
  service_.Release();
  ASSERT_TRUE(Effects(2)) << worker.Log();

  auto table = std::make_unique<TableLock>(*table_);
  SendOrder(0, "o-2", "b");
  ASSERT_TRUE(Called("o-2")) << worker.Log();
  ExpectMoves(worker, "locks_held");
  ASSERT_TRUE(WaitUntil(
      20s,
      [&] {
        return worker.Get("/status").body.find("\"oldest_stage\": \"writing\"") !=
               std::string::npos;
      },
      "the record to be written"));
  freeze();
  worker.Resume();
  ExpectMoves(worker, "lock_expirations_total", {{"phase", "writing"}});
  EXPECT_EQ(worker.Now("fencepost_completed_after_expiry_total"), 0);
  table.reset();
  ExpectMoves(worker, "completed_after_expiry_total");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

}  // namespace
}  // namespace fencepost::testing
