#include "config/text/scalar.h"
#include "config/text/suggestion.h"
#include "config/text/variables.h"

#include <map>

#include <gtest/gtest.h>

namespace fencepost::config {
namespace {

Environment Fake() {
  Environment environment;
  environment.variable = [](const std::string& name) -> std::optional<std::string> {
    static const std::map<std::string, std::string> variables = {{"A", "a"},
                                                                 {"EMPTY", ""},
                                                                 {"NESTED", "${A}"},
                                                                 {"CR", "a\r"},
                                                                 {"MARK",
                                                                  "\xef\xbb\xbf"
                                                                  "a"}};
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  environment.read_file = [](const std::string& path) -> tl::expected<std::string, std::string> {
    static const std::map<std::string, std::string> files = {{"/run/secrets/x", "s3cret\r\n\n"},
                                                             {"mark", "\xef\xbb\xbfs3cret\n"},
                                                             {"two", "a\r\nb\n"},
                                                             {"cr", "a\rb"},
                                                             {"blank before", " s3cret"},
                                                             {"blank behind", "s3cret \n"},
                                                             {"tab behind", "s3cret\t"},
                                                             {"blank within", "s3 cret\n"},
                                                             {"nul", std::string("a\0b", 3)},
                                                             {"mark alone", "\xef\xbb\xbf\r\n"}};
    if (const auto found = files.find(path); found != files.end()) return found->second;
    return tl::unexpected<std::string>("cannot be read: No such file or directory");
  };
  return environment;
}

std::string Expanded(std::string_view text, Lines lines = Lines::kOne) {
  const auto result = Expand(text, Fake(), lines);
  return result ? *result : "error: " + result.error().text;
}

TEST(Expand, ReplacesVariablesAndFilesOnce) {
  EXPECT_EQ(Expanded("plain $ text $A $$"), "plain $ text $A $$");
  EXPECT_EQ(Expanded("x${A}y${A}"), "xaya");
  EXPECT_EQ(Expanded("${MISSING:-de fault}"), "de fault");
  EXPECT_EQ(Expanded("${EMPTY:-d}|${EMPTY}|${A:-d}|${MISSING:-}"), "d||a|");
  EXPECT_EQ(Expanded("${file:/run/secrets/x}"), "s3cret");
  EXPECT_EQ(Expanded("$${A} $$${A}"), "${A} $${A}");
  EXPECT_EQ(Expanded("${NESTED}"), "${A}");
}

// What editors and CRLF files leave is not part of a secret; what may be one is refused.
TEST(Expand, OfOneLineTakesNoMarksLineEndsAndOuterBlanks) {
  const std::string blank =
      " begins or ends with a blank: remove it, or, if it is meant, write it in the pipeline file";
  const std::map<std::string, std::string> expected = {
      {"${file:mark}", "s3cret"},
      {"${file:mark alone}", ""},
      {"${file:blank within}", "s3 cret"},
      {"${file:mark} ", "s3cret "},
      {"${file:two}", "error: ${file:two} holds a line break"},
      {"${file:cr}", "error: ${file:cr} holds a line break"},
      {"${file:nul}", "error: ${file:nul} holds a NUL byte"},
      {"${file:blank before}", "error: ${file:blank before}" + blank},
      {"${file:blank behind}", "error: ${file:blank behind}" + blank},
      {"${file:tab behind}", "error: ${file:tab behind}" + blank},
      {"${CR}", "error: ${CR} holds a line break"},
      {"${CR:-d}", "error: ${CR} holds a line break"},
      {"${MARK}", "error: ${MARK} begins with a byte order mark"}};
  for (const auto& [text, value] : expected) EXPECT_EQ(Expanded(text), value) << text;
  EXPECT_EQ(Expanded("${file:two}|${file:blank behind}", Lines::kMany), "a\nb|s3cret ");
}

TEST(Expand, SaysWhatIsMissing) {
  EXPECT_EQ(Expanded("${MISSING}"),
            "error: the variable MISSING is not set; ${MISSING:-default} gives a default");
  EXPECT_EQ(Expanded("${file:/nowhere}"),
            "error: ${file:/nowhere}: cannot be read: No such file or directory");
  EXPECT_EQ(Expanded("${A"), "error: a ${ has no }; a literal ${ is written $${");
  for (const char* text : {"${}", "${1}", "${A B}", "${:-x}", "${A-x}"}) {
    EXPECT_EQ(Expanded(text),
              "error: what is in ${…} is no variable name; a literal ${ is written $${");
  }
}

TEST(Environment, OfTheProcessReadsVariablesAndFiles) {
  const Environment environment = Environment::Process();
  EXPECT_TRUE(environment.variable("PATH"));
  EXPECT_FALSE(environment.variable("FENCEPOST_NO_SUCH_VARIABLE"));
  EXPECT_EQ(environment.read_file("/nowhere/x").error(),
            "cannot be read: No such file or directory");
  EXPECT_FALSE(environment.read_file("/tmp")) << "a folder is no file";
  EXPECT_EQ(environment.read_file("/dev/null").value(), "");
}

TEST(Duration, TakesOneNumberAndOneUnit) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ParseDuration("250ms").value(), 250ms);
  EXPECT_EQ(ParseDuration("10s").value(), 10s);
  EXPECT_EQ(ParseDuration("5m").value(), 5min);
  EXPECT_EQ(ParseDuration("24h").value(), 24h);
  EXPECT_EQ(ParseDuration("7d").value(), 168h);
  EXPECT_EQ(ParseDuration("0s").value(), 0s);
  EXPECT_EQ(ParseDuration("106751d").value(), 24h * 106'751) << "292 years, in nanoseconds";
  for (const char* text : {"", "10", "s", "1.5s", "-1s", "010s", "1 s", "1S", "1m30s", "1us",
                           "106752d", "99999999999999999999s", "9223372036854775807d"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
}

TEST(Duration, IsPrintedInTheLargestExactUnit) {
  for (const char* text : {"250ms", "10s", "5m", "25h", "7d", "90s", "0ms"}) {
    EXPECT_EQ(DurationText(ParseDuration(text).value()), text);
  }
}

TEST(Size, TakesBinaryUnitsOnly) {
  EXPECT_EQ(ParseSize("512B").value(), 512u);
  EXPECT_EQ(ParseSize("64KiB").value(), 65536u);
  EXPECT_EQ(ParseSize("10MiB").value(), 10485760u);
  EXPECT_EQ(ParseSize("1GiB").value(), 1073741824u);
  for (const char* text : {"", "64", "64KB", "64kib", "1.5MiB", "0x10B", "99999999999GiB"}) {
    EXPECT_FALSE(ParseSize(text)) << text;
  }
}

TEST(Integer, IsDecimalWithoutLeadingZeros) {
  EXPECT_EQ(ParseInteger("0").value(), 0);
  EXPECT_EQ(ParseInteger("-12").value(), -12);
  EXPECT_EQ(ParseInteger("9223372036854775807").value(), 9223372036854775807);
  for (const char* text :
       {"", "-", "010", "0x10", "1e3", "1_000", "+1", " 1", "9223372036854775808"}) {
    EXPECT_FALSE(ParseInteger(text)) << text;
  }
}

TEST(Decimal, HasUpToThreePlaces) {
  EXPECT_EQ(ParseThousandths("2").value(), 2000);
  EXPECT_EQ(ParseThousandths("1.5").value(), 1500);
  EXPECT_EQ(ParseThousandths("0.125").value(), 125);
  EXPECT_EQ(ParseThousandths("10.007").value(), 10007);
  for (const char* text :
       {"", ".", ".5", "1.", "1.0005", "-1", "01.5", "1,5", "1e3", "1.5.1", "99999999999999999"}) {
    EXPECT_FALSE(ParseThousandths(text)) << text;
  }
}

TEST(Nearest, FindsSlipsOfTheHandOnly) {
  const std::vector<std::string_view> keys = {"ttl", "wait", "redis", "min_validity", "tls"};
  EXPECT_EQ(Nearest("tll", keys), "ttl");
  EXPECT_EQ(Nearest("redsi", keys), "redis");
  EXPECT_EQ(Nearest("minvalidity", keys), "min_validity");
  EXPECT_EQ(Nearest("x", keys), std::nullopt);
  EXPECT_EQ(Nearest("password", keys), std::nullopt);
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
}

}  // namespace
}  // namespace fencepost::config
