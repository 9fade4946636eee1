#include "locking/redis/wire.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "locking/check.h"
#include "locking/core/sentinel.h"
#include "locking/core/store.h"

namespace fencepost::locking {
namespace {

constexpr std::size_t kMillisDigits = 13;
constexpr std::size_t kTokenDigits = Token::kDigits;
constexpr std::size_t kCrcDigits = 8;
constexpr Millis kLongest{999'999'999'999};

// What a script answers for a name: its letter, and which fields follow it.
struct Answer {
  char letter;
  ReplyCode code;
  bool token = false;
  bool crc = false;
  bool rest = false;
};
constexpr Answer kContended{'C', ReplyCode::kContended, true, false, true};
constexpr Answer kDoneThere{'D', ReplyCode::kDone, true, true, true};
constexpr Answer kFreed{'F', ReplyCode::kFreed};
constexpr Answer kExpired{'X', ReplyCode::kExpired};
constexpr Answer kStolen{'O', ReplyCode::kStolen, true};
constexpr Answer kNotALock{'?', ReplyCode::kError};
constexpr Answer kAcquireAnswers[] = {{'G', ReplyCode::kGranted},
                                      kContended,
                                      kDoneThere,
                                      {'T', ReplyCode::kGrantedTakeover},
                                      {'S', ReplyCode::kStale, true},
                                      {'A', ReplyCode::kRefusedAhead},
                                      {'B', ReplyCode::kRefusedBehind},
                                      {'L', ReplyCode::kRefusedTtl},
                                      kNotALock};
constexpr Answer kFillAnswers[] = {{'I', ReplyCode::kFilled}, kContended, kDoneThere, kNotALock};
constexpr Answer kExtendAnswers[] = {
    {'E', ReplyCode::kExtended}, kExpired, kStolen, kDoneThere, kNotALock};
constexpr Answer kFreeAnswers[] = {kFreed, kExpired, kStolen, kNotALock};
constexpr Answer kDoneAnswers[] = {{'M', ReplyCode::kMarked},
                                   {'N', ReplyCode::kMarkedLate},
                                   {'Y', ReplyCode::kAlreadyDone, true},
                                   {'Z', ReplyCode::kConflict, true, true},
                                   kNotALock};
constexpr Answer kForgetAnswers[] = {kFreed, kExpired, kContended, kNotALock};
constexpr Answer kInspectAnswers[] = {
    kContended, kDoneThere, {'S', ReplyCode::kStale, true}, kExpired, kNotALock};

// Which script serves a kind, what its ARG of a name holds (in this order), what it may answer.
struct Format {
  std::string_view script;
  bool token;
  bool nonce;
  bool crc;  // after the ttl, which all have
  std::span<const Answer> answers;
};
Format FormatOf(OpKind kind) {
  switch (kind) {
    case OpKind::kExtend:
      return {"extend", false, true, false, kExtendAnswers};
    case OpKind::kAcquire:
      return {"acquire", true, true, false, kAcquireAnswers};
    case OpKind::kFill:
      return {"fill", true, true, false, kFillAnswers};
    case OpKind::kAbort:
    case OpKind::kRelease:
      return {"free", false, true, false, kFreeAnswers};
    case OpKind::kDone:
      return {"done", true, true, true, kDoneAnswers};
    case OpKind::kForget:
      return {"forget", false, false, false, kForgetAnswers};
    case OpKind::kInspect:
      return {"inspect", false, false, false, kInspectAnswers};
  }
  CheckFailed("a kind of operation", __FILE__, __LINE__, fmt::format("{}", static_cast<int>(kind)));
}

std::string Sha1Hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int ok = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  FENCEPOST_CHECK(ok == 1 && size == 20, "OpenSSL has no SHA-1, which EVALSHA needs");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

struct Scripts {
  std::vector<Script> all;
  std::vector<const Script*> pointers;
  std::array<const Script*, kOpKinds> by_kind{};
  const Script* sentinel_write = nullptr;

  Scripts() {
    for (const EmbeddedScript& script : EmbeddedScripts()) {
      all.push_back({script.name, script.text, Sha1Hex(script.text)});
    }
    for (const Script& script : all) pointers.push_back(&script);
    for (int kind = 0; kind < kOpKinds; ++kind) {
      by_kind[kind] = Find(FormatOf(static_cast<OpKind>(kind)).script);
    }
    sentinel_write = Find("sentinel_write");
  }
  [[nodiscard]] const Script* Find(std::string_view name) const {
    const auto found = std::ranges::find(all, name, &Script::name);
    FENCEPOST_CHECK(found != all.end(), name);
    return &*found;
  }
};
const Scripts& TheScripts() {
  static const Scripts scripts;
  return scripts;
}

// --- writing
// --------------------------------------------------------------------------------------

void AppendPadded(std::uint64_t value, std::size_t digits, std::string& out) {
  std::array<char, 20> text{};
  FENCEPOST_CHECK(digits <= text.size(), "digits");
  for (std::size_t i = digits; i-- > 0; value /= 10) text[i] = static_cast<char>('0' + value % 10);
  FENCEPOST_CHECK(value == 0, "a number does not fit its field");
  out.append(text.data(), digits);
}

void AppendMillis(Millis value, std::string& out) {
  const Millis cut = std::clamp(value, Millis(0), kLongest);
  AppendPadded(static_cast<std::uint64_t>(cut.count()), kMillisDigits, out);
}

void AppendHex(std::uint64_t value, std::size_t digits, std::string& out) {
  std::array<char, 16> text{};
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  out.append(text.data(), digits);
}

// A RESP length line: "*3\r\n" or "$40\r\n".
void AppendLength(char type, std::size_t length, std::string& out) {
  std::array<char, 24> text{};
  text[0] = type;
  char* end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, length).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

void AppendBulk(std::string_view text, std::string& out) {
  AppendLength('$', text.size(), out);
  out.append(text).append("\r\n");
}

void AppendCallHead(const Script& script, std::size_t keys, std::size_t args, std::string& out) {
  AppendLength('*', 3 + keys + args, out);
  AppendBulk("EVALSHA", out);
  AppendBulk(script.sha, out);
  AppendBulk(fmt::format_int(keys).c_str(), out);
  AppendBulk(kSentinelKey, out);
}

// --- reading
// --------------------------------------------------------------------------------------

// Takes fixed-width fields off the front of a text. Once one is wrong, `good` stays false.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }

  char Letter() {
    const std::string_view text = Take(1);
    return text.empty() ? '\0' : text[0];
  }
  std::uint64_t Number(std::size_t digits, int base = 10) {
    const std::string_view text = Take(digits);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value, base);
    if (error != std::errc() || end != text.end()) good_ = false;
    return good_ ? value : 0;
  }
  Millis Duration() { return Millis(static_cast<std::int64_t>(Number(kMillisDigits))); }

 private:
  std::string_view Take(std::size_t size) {
    if (rest_.size() < size) good_ = false;
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
    return text;
  }

  std::string_view rest_;
  bool good_ = true;
};

bool ParseReply(std::span<const Answer> answers, Fields& fields, Reply& reply) {
  const auto answer = std::ranges::find(answers, fields.Letter(), &Answer::letter);
  if (answer == answers.end()) return false;
  reply.code = answer->code;
  if (answer->token) reply.token = Token(fields.Number(kTokenDigits));
  if (answer->crc) reply.crc = static_cast<ContentCrc>(fields.Number(kCrcDigits, 16));
  if (answer->rest) reply.rest = fields.Duration();
  return fields.good();
}

}  // namespace

const Script& ScriptFor(OpKind kind) { return *TheScripts().by_kind[static_cast<int>(kind)]; }
const Script& SentinelWriteScript() { return *TheScripts().sentinel_write; }
std::span<const Script* const> AllScripts() { return TheScripts().pointers; }

void FormatCall(OpKind kind, std::span<const Op> ops, const LockOptions& options,
                std::string& out) {
  FENCEPOST_CHECK(!ops.empty() && ops.size() <= kMaxBatch, fmt::format("{} ops", ops.size()));
  const Format format = FormatOf(kind);
  AppendCallHead(ScriptFor(kind), 1 + ops.size(), 1 + ops.size(), out);
  for (const Op& op : ops) {
    FENCEPOST_CHECK(op.kind == kind, "a batch holds one kind of operation");
    AppendBulk(op.name, out);
  }
  AppendLength('$', kMillisDigits, out);
  AppendMillis(options.max_skew, out);
  out.append("\r\n");
  const std::size_t size = (format.token ? kTokenDigits : 0) +
                           (format.nonce ? Nonce::kHexDigits : 0) + kMillisDigits +
                           (format.crc ? kCrcDigits : 0);
  for (const Op& op : ops) {
    AppendLength('$', size, out);
    if (format.token) AppendPadded(op.token.value(), kTokenDigits, out);
    if (format.nonce) {
      for (const std::uint64_t half : op.nonce.bits) AppendHex(half, Nonce::kHexDigits / 2, out);
    }
    AppendMillis(op.ttl, out);
    if (format.crc) AppendHex(op.crc, kCrcDigits, out);
    out.append("\r\n");
  }
}

tl::expected<CallHeader, std::string> ParseCall(OpKind kind, std::span<const Op> ops,
                                                std::string_view payload,
                                                std::vector<Reply>& replies) {
  const Format format = FormatOf(kind);
  Fields fields(payload);
  CallHeader header;
  header.node_time = WallTime(fields.Duration());
  const char state = fields.Letter();
  if (!fields.good() || (state != 'A' && state != 'Q')) {
    return tl::unexpected(
        fmt::format("{}: no header in an answer of {} bytes", format.script, payload.size()));
  }
  header.quarantined = state == 'Q';
  const std::size_t before = replies.size();
  for (const Op& op : ops) {
    Reply reply;
    reply.lock = op.lock;
    reply.round = op.round;
    reply.kind = kind;
    reply.quarantined = header.quarantined;
    if (!ParseReply(format.answers, fields, reply)) {
      const std::size_t at = replies.size() - before;
      replies.resize(before);
      return tl::unexpected(fmt::format("{}: answer {} of {} is not what the script says",
                                        format.script, at, ops.size()));
    }
    replies.push_back(reply);
  }
  if (!fields.AtEnd()) {
    replies.resize(before);
    return tl::unexpected(fmt::format("{}: more than {} answers", format.script, ops.size()));
  }
  return header;
}

void FormatSentinelWrite(const SentinelWrite& write, std::string& out) {
  AppendCallHead(SentinelWriteScript(), 1, 3, out);
  AppendBulk(write.expected.value_or(""), out);
  AppendBulk(write.replacement, out);
  std::string quarantine;
  if (write.quarantine_for) AppendMillis(*write.quarantine_for, quarantine);
  AppendBulk(quarantine, out);
}

tl::expected<SentinelAnswer, std::string> ParseSentinelWrite(std::string_view payload) {
  Fields fields(payload);
  SentinelAnswer answer{.node_time = WallTime(fields.Duration()), .current = {}};
  if (!fields.good()) return tl::unexpected(std::string("sentinel_write: the answer has no time"));
  const std::string_view current = payload.substr(kMillisDigits);
  if (!current.empty()) answer.current = std::string(current);
  return answer;
}

}  // namespace fencepost::locking
