// The questions of a supervisor to its processes.
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/cli/supervise/channel.h"
#include "tests/support/process.h"

namespace fencepost::cli {
namespace {

using namespace std::chrono_literals;

AskingEnd::Time In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

TEST(Channel, CarriesPathAndBodyThereAndStatusAndTextBack) {
  SocketPair ends = MakeSocketPair();
  AskingEnd asking(std::move(ends.asking));
  const std::string large(3'000'000, 'x');  // more than the sockets hold
  const AnsweringEnd answering(
      std::move(ends.answering),
      [&](std::string_view path, std::string_view body) {
        if (path == "/large") return Answer{200, large};
        return Answer{503, std::string(path) + "|" + std::string(body)};
      },
      [] {});
  const auto answer = asking.Ask({"/a/b", "two\nlines"}, In(10s));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->text, "/a/b|two\nlines");
  EXPECT_EQ(asking.Ask({"/large"}, In(10s))->text, large);
  EXPECT_EQ(asking.Ask({"/empty"}, In(10s))->text, "/empty|");
}

TEST(Channel, AnAnswerThatComesTooLateIsNotTakenForThatToTheNextQuestion) {
  SocketPair ends = MakeSocketPair();
  AskingEnd asking(std::move(ends.asking));
  std::promise<void> go;
  const AnsweringEnd answering(
      std::move(ends.answering),
      [&, wait = go.get_future().share()](std::string_view path, std::string_view) {
        if (path == "/slow") wait.wait();
        return Answer{200, std::string(path)};
      },
      [] {});
  {
    auto slow = asking.Begin({"/slow"}, In(10s));
    ASSERT_TRUE(slow);
    EXPECT_FALSE(slow->Await(In(0ms)));
  }
  auto quick = asking.Begin({"/quick"}, In(10s));
  go.set_value();  // so that both answers come once the second is asked for
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->Await(In(10s))->text, "/quick");
}

TEST(Channel, WhoOwesManyAnswersIsAskedNothingMoreUntilTheyHaveCome) {
  SocketPair ends = MakeSocketPair();
  AskingEnd asking(std::move(ends.asking));
  std::promise<void> go;
  std::atomic<int> answered{0};
  const AnsweringEnd answering(
      std::move(ends.answering),
      [&, wait = go.get_future().share()](std::string_view path, std::string_view) {
        wait.wait();
        ++answered;
        return Answer{200, std::string(path)};
      },
      [] {});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(asking.Ask({"/frozen"}, In(0ms)));
  go.set_value();
  std::optional<Answer> answer;
  EXPECT_TRUE(testing::WaitUntil(
      10s, [&] { return (answer = asking.Ask({"/thawed"}, In(100ms))).has_value(); }, "an answer"));
  EXPECT_EQ(answer->text, "/thawed");
  EXPECT_LE(answered, AskingEnd::kMostUnanswered + 1);
}

TEST(Channel, SeveralMayAskAtATimeAndEachGetsItsAnswer) {
  SocketPair ends = MakeSocketPair();
  AskingEnd asking(std::move(ends.asking));
  const AnsweringEnd answering(
      std::move(ends.answering),
      [](std::string_view path, std::string_view) {
        return Answer{200, std::string(path)};
      },
      [] {});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string path = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto answer = asking.Ask({path}, In(20s));
        if (!answer || answer->text != path) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Channel, EachEndNoticesThatTheOtherHasGone) {
  const auto answer = [](std::string_view, std::string_view) { return Answer{}; };
  SocketPair first = MakeSocketPair();
  std::promise<void> gone;
  const AnsweringEnd left(std::move(first.answering), answer, [&] { gone.set_value(); });
  first.asking.Close();
  EXPECT_EQ(gone.get_future().wait_for(10s), std::future_status::ready);

  SocketPair second = MakeSocketPair();
  AskingEnd asking(std::move(second.asking));
  second.answering.Close();
  const auto from = std::chrono::steady_clock::now();
  EXPECT_FALSE(asking.Ask({"/"}, In(30s)));
  EXPECT_LT(std::chrono::steady_clock::now() - from, 20s) << "at once";
}

TEST(Channel, WhatIsNoAnswerEndsIt) {
  SocketPair ends = MakeSocketPair();
  AskingEnd asking(std::move(ends.asking));
  const std::string nonsense(64, '\xff');
  ASSERT_EQ(send(ends.answering.get(), nonsense.data(), nonsense.size(), 0), 64);
  EXPECT_FALSE(asking.Ask({"/"}, In(10s)));
  char question[64];
  while (recv(ends.answering.get(), question, sizeof question, 0) > 0) {
  }
  EXPECT_EQ(recv(ends.answering.get(), question, sizeof question, 0), 0) << "it was closed";
}

}  // namespace
}  // namespace fencepost::cli
