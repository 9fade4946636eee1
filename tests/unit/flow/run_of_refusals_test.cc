// Whether a refusal is the record's own fault, by how many came in a row.
#include "consumer/flow/ports/run_of_refusals.h"

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

TEST(RunOfRefusals, BlamesTheRecordsWhileTheyAreFew) {
  RunOfRefusals run(4);
  run.Count(3);
  EXPECT_TRUE(run.Believes(1));
  EXPECT_FALSE(run.Believes(2));
  run.Count();
  EXPECT_TRUE(run.Believes(0));
  EXPECT_FALSE(run.Believes());
  run.End();
  EXPECT_TRUE(run.Believes(4));
}

TEST(RunOfRefusals, DoesNotCountThoseThatItDoesNotBelieve) {
  RunOfRefusals run(4);
  run.Count(9);
  EXPECT_EQ(run.count(), 4U);
  run.Forget(1);
  EXPECT_TRUE(run.Believes());
  run.Fill();
  EXPECT_FALSE(run.Believes());
}

TEST(RunOfRefusals, WithoutALimitBelievesAll) {
  RunOfRefusals run(0);
  run.Count(5000);
  EXPECT_TRUE(run.Believes(5000));
  run.Fill();
  EXPECT_TRUE(run.Believes());
}

}  // namespace
}  // namespace fencepost::consumer
