// The check that every run of ./dev bench ends with, and how its end is told.
#include "tests/bench/shared/effects.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/bench/shared/measure.h"

namespace fencepost::bench {
namespace {

class Effects : public ::testing::Test {
 protected:
  Effects() { postgres_.Exec("CREATE TABLE effects (order_id text, amount bigint)"); }

  void Write(const std::string& id) const {
    postgres_.Exec("INSERT INTO effects VALUES ('" + id + "', 1)");
  }

  testing::PostgresServer postgres_{{.config = {"track_commit_timestamp=on"}}};
};

TEST_F(Effects, ArePassedWhereEachIdHasOneAndAsManyAsAreDue) {
  Write("a");
  Write("b");
  EXPECT_NO_THROW(CheckEffects(postgres_, 2, 2));
  EXPECT_NO_THROW(CheckEffects(postgres_, 0, 3));
}

TEST_F(Effects, AreRefusedWhereAnIdHasTwo) {
  Write("a");
  Write("a");
  Write("b");
  EXPECT_THROW(CheckEffects(postgres_, 2, 2), std::runtime_error);
  EXPECT_THROW(CheckEffects(postgres_, 0, 3), std::runtime_error);
}

TEST_F(Effects, AreRefusedWhereOneIsMissingOrNoneOfOurs) {
  Write("a");
  EXPECT_THROW(CheckEffects(postgres_, 2, 2), std::runtime_error);
  EXPECT_THROW(CheckEffects(postgres_, 0, 0), std::runtime_error);
}

TEST_F(Effects, EndWithTheLastCommitAndNotWithWhatCommitsLater) {
  const double before = EpochSeconds();
  Write("a");
  Write("b");
  const double last = LastCommit(postgres_);
  EXPECT_GE(last, before - 0.001);
  EXPECT_LE(last, EpochSeconds());
  postgres_.Exec("CREATE TABLE others AS SELECT 1");
  EXPECT_EQ(LastCommit(postgres_), last);
  Write("c");
  EXPECT_GT(LastCommit(postgres_), last);
}

}  // namespace
}  // namespace fencepost::bench
