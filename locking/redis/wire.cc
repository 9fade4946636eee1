#include "locking/redis/wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/digest.h"
#include "locking/base/fixed_fields.h"
#include "locking/core/store/sentinel.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {

// (name, text) of locking/core/scripts, prelude.lua first.
std::span<const std::pair<std::string_view, std::string_view>> ScriptFiles();

namespace {

constexpr std::size_t kSecondsDigits = 10;
constexpr std::size_t kMicrosDigits = 6;  // at most
constexpr std::string_view kTtlsDiffer = "-------------";
static_assert(kTtlsDiffer.size() == kMillisDigits);

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
constexpr Answer kNotALock{'?', ReplyCode::kForeign};
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
  char value;  // what the node is to store begins with it; 0: it makes the value itself
  bool token;
  bool crc;
  bool nonce;
  bool ttl;  // where the names of a call differ in it
  std::span<const Answer> answers;

  [[nodiscard]] std::size_t ArgSize(bool ttls_differ) const {
    return (value != 0 ? 1 : 0) + (token ? kTokenDigits : 0) + (crc ? kCrcDigits : 0) +
           (nonce ? Nonce::kBytes : 0) + (ttl && ttls_differ ? kMillisDigits : 0);
  }
};
constexpr Format kFormats[] = {  // by OpKind
    {"extend", 0, false, false, true, true, kExtendAnswers},
    {"acquire", 0, true, false, true, true, kAcquireAnswers},
    {"fill", 0, true, false, true, true, kFillAnswers},
    {"free", 'F', true, false, true, false, kFreeAnswers},  // abort
    {"free", 'F', true, false, true, false, kFreeAnswers},  // release
    {"done", 'D', true, true, true, true, kDoneAnswers},
    {"forget", 0, false, false, false, true, kForgetAnswers},
    {"inspect", 0, false, false, false, false, kInspectAnswers}};
static_assert(std::size(kFormats) == kOpKinds);
const Format& FormatOf(OpKind kind) { return kFormats[static_cast<std::size_t>(kind)]; }

struct Scripts {
  std::vector<Script> all;
  std::vector<const Script*> pointers;
  std::array<const Script*, kOpKinds> by_kind{};

  Scripts() {
    for (const auto& [name, file] : ScriptFiles().subspan(1)) {
      std::string text(file);
      // Behind the line with the flags, in each that works on names.
      if (name != "sentinel_write") text.insert(text.find('\n') + 1, ScriptFiles()[0].second);
      all.push_back({name, text, Sha1Hex(text)});
    }
    for (const Script& script : all) pointers.push_back(&script);
    for (int kind = 0; kind < kOpKinds; ++kind) {
      by_kind[kind] = Find(FormatOf(static_cast<OpKind>(kind)).script);
    }
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

// --- writing -----------------------------------------------------------------------------------

// A RESP length line: "*3\r\n" or "$40\r\n".
void AppendLength(char type, std::size_t length, std::string& out) {
  std::array<char, 24> text{};
  text[0] = type;
  char* end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, length).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

// --- reading -----------------------------------------------------------------------------------

// Seconds, then one to six digits of microseconds, up to what is not a digit.
std::optional<WallTime> TakeTime(FixedFields& fields) {
  const std::uint64_t seconds = fields.Number(kSecondsDigits);
  const std::size_t digits =
      std::min(fields.rest().find_first_not_of("0123456789"), fields.rest().size());
  if (digits == 0 || digits > kMicrosDigits) return std::nullopt;
  const std::uint64_t micros = fields.Number(digits);
  return WallTime(Millis(static_cast<std::int64_t>(seconds * 1000 + micros / 1000)));
}

bool ParseReply(std::span<const Answer> answers, FixedFields& fields, Reply& reply) {
  const auto answer = std::ranges::find(answers, fields.Letter(), &Answer::letter);
  if (answer == answers.end()) return false;
  reply.code = answer->code;
  if (answer->token) reply.token = Token(fields.Number(kTokenDigits, 16));
  if (answer->crc) reply.crc = static_cast<ContentCrc>(fields.Number(kCrcDigits, 16));
  if (answer->rest) reply.rest = fields.Duration();
  return fields.good();
}

}  // namespace

const Script& ScriptFor(OpKind kind) { return *TheScripts().by_kind[static_cast<int>(kind)]; }
const Script& ScriptNamed(std::string_view name) { return *TheScripts().Find(name); }
std::span<const Script* const> AllScripts() { return TheScripts().pointers; }

void AppendCommand(std::initializer_list<std::string_view> words, std::string& out) {
  AppendLength('*', words.size(), out);
  for (const std::string_view word : words) AppendBulk(word, out);
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

void FormatCall(OpKind kind, std::span<const Op> ops, const LockOptions& options,
                std::string& out) {
  FENCEPOST_CHECK(!ops.empty() && ops.size() <= kMaxBatch, fmt::format("{} ops", ops.size()));
  const Format& format = FormatOf(kind);
  AppendCallHead(ScriptFor(kind), 1 + ops.size(), 1 + ops.size(), out);
  for (const Op& op : ops) {
    FENCEPOST_CHECK(op.kind == kind, "a batch holds one kind of operation");
    AppendBulk(op.name, out);
  }
  const Millis ttl = ops[0].ttl;
  const bool ttls_differ =
      format.ttl && !std::ranges::all_of(ops, [ttl](const Op& op) { return op.ttl == ttl; });
  const bool told = kind == OpKind::kRelease && options.wake_up;
  AppendLength('$', 2 * kMillisDigits + (told ? 1 : 0), out);
  AppendMillis(options.max_skew, out);
  ttls_differ ? void(out.append(kTtlsDiffer)) : AppendMillis(ttl, out);
  out.append(told ? "W\r\n" : "\r\n");
  const std::size_t size = format.ArgSize(ttls_differ);
  for (const Op& op : ops) {
    AppendLength('$', size, out);
    if (format.value != 0) out.push_back(format.value);
    if (format.token) AppendHex(op.token.value(), kTokenDigits, out);
    if (format.crc) AppendHex(op.crc, kCrcDigits, out);
    if (format.nonce) AppendBytes(op.nonce, out);
    if (format.ttl && ttls_differ) AppendMillis(op.ttl, out);
    out.append("\r\n");
  }
}

void FormatPlainAcquires(std::span<const Op> ops, WallTime from, const LockOptions& options,
                         std::string& out) {
  const auto millis = [](WallTime time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
  };
  std::string head;  // of the value, up to the token
  std::string tail;  // behind the value
  std::optional<Millis> ttl;
  for (const Op& op : ops) {
    if (op.ttl != ttl) {
      ttl = op.ttl;
      const WallTime deadline = from + op.ttl;
      head.clear();
      AppendLength('$', 1 + kInstantDigits + kTokenDigits + Nonce::kBytes, head);
      head.push_back('H');
      AppendHex(millis(deadline), kInstantDigits, head);
      tail = "\r\n$2\r\nNX\r\n$3\r\nGET\r\n$4\r\nPXAT\r\n";
      AppendBulk(fmt::format_int(millis(deadline + 2 * options.max_skew)).c_str(), tail);
    }
    out.append("*7\r\n$3\r\nSET\r\n");
    AppendBulk(op.name, out);
    out.append(head);
    AppendHex(op.token.value(), kTokenDigits, out);
    AppendBytes(op.nonce, out);
    out.append(tail);
  }
  out.append("*2\r\n$3\r\nGET\r\n");
  AppendBulk(kSentinelKey, out);
  out.append("*1\r\n$4\r\nTIME\r\n");
}

tl::expected<CallHeader, std::string> ParseCall(OpKind kind, std::span<const Op> ops,
                                                std::string_view payload,
                                                std::vector<Reply>& replies) {
  const Format& format = FormatOf(kind);
  FixedFields fields(payload);
  CallHeader header;
  const auto time = TakeTime(fields);
  const char state = fields.Letter();
  if (!time || !fields.good() || (state != 'A' && state != 'Q')) {
    return tl::unexpected(
        fmt::format("{}: no header in an answer of {} bytes", format.script, payload.size()));
  }
  header.node_time = *time;
  header.quarantined = state == 'Q';
  const std::size_t before = replies.size();
  for (const Op& op : ops) {
    Reply reply = ReplyTo(op, ReplyCode::kError);
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
  if (!fields.Complete()) {
    replies.resize(before);
    return tl::unexpected(fmt::format("{}: more than {} answers", format.script, ops.size()));
  }
  return header;
}

void FormatSentinelWrite(const SentinelWrite& write, std::string& out) {
  AppendCallHead(ScriptNamed("sentinel_write"), 1, 3, out);
  AppendBulk(write.expected.value_or(""), out);
  AppendBulk(write.replacement, out);
  std::string quarantine;
  if (write.quarantine_for) AppendMillis(*write.quarantine_for, quarantine);
  AppendBulk(quarantine, out);
}

tl::expected<SentinelAnswer, std::string> ParseSentinelWrite(std::string_view payload) {
  FixedFields fields(payload);
  SentinelAnswer answer{.node_time = WallTime(fields.Duration()), .current = {}};
  if (!fields.good()) return tl::unexpected(std::string("sentinel_write: the answer has no time"));
  const std::string_view current = payload.substr(kMillisDigits);
  if (!current.empty()) answer.current = std::string(current);
  return answer;
}

}  // namespace fencepost::locking
