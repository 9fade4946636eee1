#include "consumer/aws/aws_credentials.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/json/json_reader.h"
#include "consumer/record/text.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {
namespace {

using Found = tl::expected<AwsCredentials, std::string>;

constexpr int kTries = 2;

std::string Of(const AwsOutside& outside, const char* name) {
  return outside.variable(name).value_or("");
}

bool IsWord(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  return !text.empty() && text.size() <= kLongest && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
  });
}

// Of a file that holds a token, perhaps with a line end.
tl::expected<std::string, std::string> TokenIn(const AwsOutside& outside, const std::string& path) {
  auto text = outside.read_file(path);
  // A token in the place of its path is not shown.
  const bool is_path = path.starts_with('/') && IsVisible(path);
  const std::string_view shown = is_path ? std::string_view(path) : "the file";
  if (!text) return tl::unexpected(fmt::format("{} {}", shown, text.error()));
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (IsVisible(*text)) return text;
  return tl::unexpected(fmt::format("{} {}", shown, text->empty() ? "is empty" : "is no token"));
}

// Asks again where nobody answered, or the service had a trouble of its own.
AwsAnswer Ask(const AwsOutside& outside, const AwsRequest& request) {
  AwsAnswer answer;
  for (int i = 0; i < kTries; ++i) {
    answer = outside.call(request);
    if (answer.problem.empty() && answer.status < 500) break;
  }
  return answer;
}

// "" for a good answer. Of a bad one its code, where that is a word: messages may hold anything.
std::string ProblemOf(const AwsAnswer& answer, std::string_view code) {
  if (!answer.problem.empty()) return answer.problem;
  if (answer.status == 200) return "";
  return fmt::format("HTTP {}{}", answer.status, IsWord(code) ? fmt::format(" ({})", code) : "");
}

// 2026-11-28T12:00:00Z, or with a fraction.
std::optional<std::chrono::sys_seconds> TimeOf(std::string_view text) {
  const auto read = ParseDateTime(text);
  if (!read || !read->has_offset) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(read->point.seconds));
}

// `part` finds a value of an answer by its name.
template <typename Part>
Found Taken(const Part& part, const char* token, bool has_token) {
  AwsCredentials found{{part("AccessKeyId"), part("SecretAccessKey"), part(token)}, {}};
  const std::string expires = part("Expiration");
  for (const auto& [name, value] :
       {std::pair("AccessKeyId", &found.keys.key_id),
        std::pair("SecretAccessKey", &found.keys.secret), std::pair(token, &found.keys.token)}) {
    if (value->empty() && (name != token || has_token)) {
      return tl::unexpected(fmt::format("the answer has no {}", name));
    }
    if (!value->empty() && !IsVisible(*value)) {
      return tl::unexpected(fmt::format("the answer's {} is none", name));
    }
  }
  found.expires = TimeOf(expires);
  if (!found.expires && !expires.empty()) {
    return tl::unexpected<std::string>("the answer's Expiration is no time");
  }
  return found;
}

// Of container endpoints and of the metadata service.
Found OfJson(const AwsAnswer& answer) {
  JsonReader reader;
  reader.Begin(answer.body);
  const auto part = [&](const char* name) {
    std::string text;
    const bool is_text = reader.Append(fmt::format("/{}", name), text) == JsonFound::kValue &&
                         reader.type() == JsonType::kString;
    return is_text ? text : "";
  };
  const std::string code = part("Code").empty() ? part("code") : part("Code");
  if (const std::string problem = ProblemOf(answer, code); !problem.empty()) {
    return tl::unexpected(problem);
  }
  if (!code.empty() && code != "Success") {
    return tl::unexpected(fmt::format("it says {}", IsWord(code) ? code : "that it has none"));
  }
  std::string all;
  if (reader.Append("", all) == JsonFound::kMalformed) {
    return tl::unexpected<std::string>("the answer is not JSON");
  }
  return Taken(part, "Token", false);
}

// STS answers in XML. What is looked for are words and base64: without attributes and entities.
std::string ElementOf(std::string_view xml, std::string_view name) {
  const std::string begin = fmt::format("<{}>", name);
  const std::string end = fmt::format("</{}>", name);
  const std::size_t from = xml.find(begin);
  if (from == std::string_view::npos) return "";
  xml.remove_prefix(from + begin.size());
  const std::size_t to = xml.find(end);
  const std::string_view text = xml.substr(0, to);
  const bool plain = to != std::string_view::npos && text.find_first_of("<&") == text.npos;
  return plain ? std::string(text) : "";
}

Found FromEnvironment(const AwsOutside& outside) {
  AwsKeys keys{Of(outside, "AWS_ACCESS_KEY_ID"), Of(outside, "AWS_SECRET_ACCESS_KEY"),
               Of(outside, "AWS_SESSION_TOKEN")};
  const bool whole = !keys.key_id.empty() && !keys.secret.empty();
  if (whole) return AwsCredentials{std::move(keys), std::nullopt};
  return tl::unexpected<std::string>(
      "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY one is set, and not the other");
}

Found FromWebIdentity(const AwsOutside& outside, std::string_view region) {
  const auto failed = [](const std::string& why) {
    return tl::unexpected("by AWS_WEB_IDENTITY_TOKEN_FILE: " + why);
  };
  const std::string role = Of(outside, "AWS_ROLE_ARN");
  if (role.empty()) return failed("AWS_ROLE_ARN is not set");
  const auto token = TokenIn(outside, Of(outside, "AWS_WEB_IDENTITY_TOKEN_FILE"));
  if (!token) return failed(token.error());
  std::string session = Of(outside, "AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "fencepost";
  std::string url = Of(outside, "AWS_ENDPOINT_URL_STS");
  if (url.empty()) {
    const std::string own = Of(outside, "AWS_REGION");
    const std::string_view near = IsAwsRegion(own) ? std::string_view(own) : region;
    url =
        fmt::format("https://sts.{}.amazonaws.com{}/", near, near.starts_with("cn-") ? ".cn" : "");
  }
  const AwsAnswer answer = Ask(
      outside, {.method = "POST",
                .url = std::move(url),
                .headers = {"Content-Type: application/x-www-form-urlencoded"},
                .body = fmt::format("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}"
                                    "&RoleSessionName={}&WebIdentityToken={}",
                                    AwsEncoded(role), AwsEncoded(session), AwsEncoded(*token)),
                .near = false});
  const std::string problem = ProblemOf(answer, ElementOf(answer.body, "Code"));
  if (!problem.empty()) return failed("STS: " + problem);
  auto found =
      Taken([&](const char* name) { return ElementOf(answer.body, name); }, "SessionToken", true);
  return found ? found : failed("STS: " + found.error());
}

// Whether what goes there in clear stays in this machine or pod.
bool MayBePlain(std::string_view host) {
  constexpr std::array kNear{"localhost", "[::1]", "169.254.170.2", "169.254.170.23",
                             "[fd00:ec2::23]"};
  const bool loopback =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
  return loopback || std::ranges::find(kNear, host) != kNear.end();
}

tl::expected<std::string, std::string> ContainerUrl(const AwsOutside& outside) {
  const std::string path = Of(outside, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (path.starts_with('/')) return "http://169.254.170.2" + path;
  if (!path.empty()) {
    return tl::unexpected<std::string>("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no /PATH");
  }
  std::string url = Of(outside, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const curl::Url parts(curl_url());
  char* text = nullptr;
  const bool parsed = curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
                      curl_url_get(parts.get(), CURLUPART_HOST, &text, 0) == CURLUE_OK;
  const curl::Text host(text);
  if (parsed &&
      (url.starts_with("https://") || (url.starts_with("http://") && MayBePlain(host.get())))) {
    return url;
  }
  return tl::unexpected<std::string>(
      "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor http:// of this machine");
}

Found FromContainer(const AwsOutside& outside) {
  const auto failed = [](const std::string& why) {
    return tl::unexpected("by the container's endpoint: " + why);
  };
  const auto url = ContainerUrl(outside);
  if (!url) return failed(url.error());
  AwsRequest request{.url = *url, .headers = {"Accept: application/json"}};
  request.near = url->starts_with("http://");
  std::string token = Of(outside, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string file = Of(outside, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!file.empty()) {
    auto read = TokenIn(outside, file);
    if (!read) return failed(read.error());
    token = std::move(*read);
  }
  // "Basic …" has a blank in it.
  if (token.find_first_of("\r\n") != std::string::npos) {
    return failed("AWS_CONTAINER_AUTHORIZATION_TOKEN has a line end");
  }
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  auto found = OfJson(Ask(outside, request));
  return found ? found : failed(found.error());
}

Found FromInstance(const AwsOutside& outside) {
  const auto failed = [](const std::string& why) {
    return tl::unexpected("none in the environment, and by the instance's metadata service: " +
                          why);
  };
  if (Lower(Of(outside, "AWS_EC2_METADATA_DISABLED")) == "true") {
    return failed("AWS_EC2_METADATA_DISABLED");
  }
  std::string service = Of(outside, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const bool ipv6 = Lower(Of(outside, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")) == "ipv6";
  if (service.empty()) service = ipv6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  while (service.ends_with('/')) service.pop_back();
  const AwsAnswer session = Ask(outside, {.method = "PUT",
                                          .url = service + "/latest/api/token",
                                          .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 60"}});
  // By a hop limit of 1 no answer reaches a container.
  if (!session.problem.empty()) {
    return failed(session.problem +
                  "; in a container, the instance's metadata hop limit must be 2 or more");
  }
  if (const auto problem = ProblemOf(session, ""); !problem.empty()) return failed(problem);
  if (!IsVisible(session.body)) return failed("its token is none");
  const auto get = [&](const std::string& name) {
    return Ask(outside, {.url = service + "/latest/meta-data/iam/security-credentials/" + name,
                         .headers = {"X-aws-ec2-metadata-token: " + session.body}});
  };
  const AwsAnswer roles = get("");
  if (roles.problem.empty() && roles.status == 404) return failed("the instance has no role");
  if (const auto problem = ProblemOf(roles, ""); !problem.empty()) return failed(problem);
  const std::string role = roles.body.substr(0, roles.body.find_first_of("\r\n"));
  if (!IsVisible(role)) return failed("the instance has no role");
  auto found = OfJson(get(AwsEncoded(role)));
  return found ? found : failed(found.error());
}

}  // namespace

bool IsAwsRegion(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Found FindAwsCredentials(const AwsOutside& outside, std::string_view region) {
  const auto given = [&](const char* name) { return !Of(outside, name).empty(); };
  if (given("AWS_ACCESS_KEY_ID") || given("AWS_SECRET_ACCESS_KEY")) return FromEnvironment(outside);
  if (given("AWS_WEB_IDENTITY_TOKEN_FILE")) return FromWebIdentity(outside, region);
  if (given("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
      given("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    return FromContainer(outside);
  }
  return FromInstance(outside);
}

}  // namespace fencepost::consumer
