// deploy/fencing/http_server.py
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/component/fences/holder.h"
#include "tests/support/paths.h"

namespace fencepost::fences {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// The example server in a folder of its own; its port is its own choice.
class Service {
 public:
  Service() { Start(); }
  void Start() {
    testing::ProcessOptions options;
    options.argv = {"python3",
                    "-u",
                    testing::SourcePath("deploy/fencing/http_server.py"),
                    "--port",
                    "0",
                    "--database",
                    dir_.File("fence.db")};
    process_ = std::make_unique<testing::Process>(std::move(options));
    testing::RequireWithin(seconds(30), "the service", [this] {
      const std::string said = process_->Output();
      const std::size_t at = said.find("http://");
      if (at == std::string::npos || said.find('\n', at) == std::string::npos) return false;
      url_ = said.substr(at, said.find('\n', at) - at);
      return true;
    });
  }
  void Kill() { process_.reset(); }

  // The line of the README, with $FENCEPOST_TOKEN; prints the answer's headers too.
  [[nodiscard]] std::string Put(const std::string& value, const std::string& key) const {
    return fmt::format(
        "curl --fail-with-body -isS -X PUT {}/account-7 -d '{}' "
        "-H \"Fencing-Token: $FENCEPOST_TOKEN\" -H 'Idempotency-Key: {}'",
        url_, value, key);
  }
  struct Said {
    int exit_code = 0;
    std::string text;
  };
  [[nodiscard]] Said Run(const std::string& token, const std::string& command) const {
    const auto done = testing::RunToEnd(
        {.argv = {"sh", "-c", command}, .env = {{"FENCEPOST_TOKEN", token}}}, seconds(30));
    return {done.exit_code, done.output};
  }
  [[nodiscard]] std::string Stored() const {
    return Run("", "curl -sS " + url_ + "/account-7").text;
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  testing::TempDir dir_;
  std::unique_ptr<testing::Process> process_;
  std::string url_;
};

class FrozenHttpHolder : public HolderTest {};

TEST_F(FrozenHttpHolder, IsRefusedWhenItWritesAfterTheNextOne) {
  const Service service;
  const Late late = WriteLate(service.Put("frozen", "k-1"), service.Put("next", "k-2"));
  EXPECT_NE(late.code, 0);
  EXPECT_THAT(late.holder->Said(), HasSubstr("412"));
  EXPECT_THAT(late.holder->Said(), HasSubstr("Fencing-Token-Highest: " + late.winner));
  EXPECT_EQ(service.Stored(), "next");
}

// One record handled twice, as after a takeover: the same key, another token.
TEST_F(FrozenHttpHolder, IsAnsweredAsTheNextOneWasWhereTheyDidTheSameWork) {
  const Service service;
  const Late late = WriteLate(service.Put("same", "k-1"), service.Put("same", "k-1"));
  EXPECT_EQ(late.code, 0) << late.holder->Said();
  EXPECT_THAT(late.holder->Said(), HasSubstr("201"));
  EXPECT_THAT(late.holder->Said(), HasSubstr(late.winner));
  EXPECT_EQ(service.Stored(), "same");
}

TEST(HttpFence, TakesARequestOnceAndAnswersItAlways) {
  Service service;
  EXPECT_THAT(service.Run("5", service.Put("a", "k-1")).text, HasSubstr("201"));
  EXPECT_THAT(service.Run("6", service.Put("b", "k-2")).text, HasSubstr("200"));
  EXPECT_THAT(service.Run("7", service.Put("a", "k-1")).text, HasSubstr("201"));
  EXPECT_EQ(service.Stored(), "b");
  // The repeated request has raised the fence all the same.
  EXPECT_THAT(service.Run("6", service.Put("c", "k-3")).text, HasSubstr("412"));
  EXPECT_THAT(service.Run("8", service.Put("d", "k-1")).text, HasSubstr("422"));
  EXPECT_EQ(service.Stored(), "b");
}

TEST(HttpFence, RemembersOverACrash) {
  Service service;
  EXPECT_EQ(service.Run("9007199254740993", service.Put("a", "k-1")).exit_code, 0);
  service.Kill();
  service.Start();
  const auto late = service.Run("9007199254740992", service.Put("b", "k-2"));
  EXPECT_NE(late.exit_code, 0);
  EXPECT_THAT(late.text, HasSubstr("412"));
  EXPECT_EQ(service.Stored(), "a");
}

TEST(HttpFence, WantsBothHeaders) {
  const Service service;
  for (const char* token : {"", "0", "-1", "x", "9223372036854775808"}) {
    EXPECT_THAT(service.Run(token, service.Put("a", "k-1")).text, HasSubstr("400")) << token;
  }
  EXPECT_THAT(service
                  .Run("5", "curl -isS -X PUT " + service.url() +
                                "/a -d x -H \"Fencing-Token: $FENCEPOST_TOKEN\"")
                  .text,
              HasSubstr("400"));
  EXPECT_THAT(service.Stored(), HasSubstr("nothing"));
}

}  // namespace
}  // namespace fencepost::fences
