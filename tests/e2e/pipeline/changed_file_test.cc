// A pipeline file that is changed while there are records (deploy/operations/upgrade.md).
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

class ChangedFile : public PipelineTest {
 protected:
  // Effects once a worker with this file has done all that it finds.
  int EffectsAfter(const PipelineText& text, const std::string& group) {
    WorkerProcess worker(Worker(text));
    EXPECT_TRUE(WaitUntil(std::chrono::seconds(60), "the offsets of " + group, [&] {
      return CommittedToTheEnd(Kafka(), group, name_);
    })) << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
    return table_->Count();
  }
};

TEST_F(ChangedFile, WithAnotherGroupStartsWhereItSaysAndTheLedgerSkipsWhatIsDone) {
  PipelineText text = Text(2);
  Orders orders = Produced(200, 2);
  ASSERT_EQ(EffectsAfter(text, name_), 200);
  orders.Produce(50);
  text.start_from = "earliest\n  group: another-" + name_;
  EXPECT_EQ(EffectsAfter(text, "another-" + name_), 250);
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

TEST_F(ChangedFile, WithAnotherNameTakesEveryRecordForNew) {
  PipelineText text = Text(2);
  Orders orders = Produced(100, 2);
  ASSERT_EQ(EffectsAfter(text, name_), 100);
  text.name = name_ + "-b";
  EXPECT_EQ(EffectsAfter(text, text.name), 200);
}

}  // namespace
}  // namespace fencepost::testing
