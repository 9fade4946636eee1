// Bytes from a lock node (RESP): a session takes the same steps however they are cut into pieces,
// and what it says of them is fit to print. The first line: the size of the pieces, as one byte,
// how many nils are taken at once, and anything else for a session that listens.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include "locking/redis/session/node_session.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace locking;
using namespace std::chrono_literals;
using Step = NodeSession::Step;

struct Way {
  std::size_t piece = 0;  // 0: all at once
  bool listens = false;
  std::size_t nils = 0;
};

std::string ReplyText(const redisReply& reply) {
  std::string text = fmt::format("{}:{}:{}", reply.type, reply.integer, reply.elements);
  if (reply.str != nullptr) text.append(":").append(reply.str, reply.len);
  for (std::size_t i = 0; i < reply.elements; ++i) text += "[" + ReplyText(*reply.element[i]) + "]";
  return text;
}

// Asks for three replies a turn, until the session closes; what it did.
std::vector<std::string> Play(std::string_view bytes, const Way& way) {
  constexpr Instant kNow{1h};
  NodeSession session({.username = "u",
                       .password = "p",
                       .scripts = AllScripts().first(1),
                       .handshake_timeout = 1s,
                       .check_every = 1s});
  std::string out;
  std::vector<std::string> said;
  session.Start(kNow);
  session.OnOpen(out);
  const std::size_t piece = way.piece == 0 ? std::max<std::size_t>(bytes.size(), 1) : way.piece;
  while (!bytes.empty()) {
    session.OnBytes(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (Step step = session.Next(kNow); step != Step::kWait; step = session.Next(kNow)) {
      said.push_back(fmt::format("{}", static_cast<int>(step)));
      if (step == Step::kClose) {
        FENCEPOST_CHECK(IsOneLine(session.failure().Text()), Shown(session.failure().Text()));
        said.push_back(session.failure().Text());
        return said;
      }
      if (step == Step::kReply) {
        said.push_back(ReplyText(session.reply()));
        for (std::size_t nils = session.TakeNils(way.nils); nils > 0; --nils) {
          said.push_back(fmt::format("{}", static_cast<int>(Step::kReply)));
          said.push_back("4:0:0");  // as if each had been delivered
        }
      } else if (step == Step::kPrepared && way.listens) {
        session.Listen(kNow);
      } else if (step == Step::kPrepared) {
        session.Up(kNow);
        session.EndTurn();
        session.BeginTurn(kNow, 1s);
        session.Ask(3, NodeSession::Late::kDropped);
      } else if (step == Step::kAnswered) {
        session.EndTurn();
        session.BeginTurn(kNow, 1s);
        session.Ask(3, NodeSession::Late::kDropped);
      }
    }
  }
  return said;
}

}  // namespace

void OneInput(std::string_view input) {
  Parts parts(input);
  const std::string_view head = parts.Line();
  Way way;
  if (!head.empty()) way.piece = 1 + static_cast<unsigned char>(head[0]) % 64;
  if (head.size() > 1) way.nils = static_cast<unsigned char>(head[1]) % 8;
  way.listens = head.size() > 2;
  const auto in_pieces = Play(parts.rest(), way);
  const auto at_once = Play(parts.rest(), {.piece = 0, .listens = way.listens, .nils = 0});
  FENCEPOST_CHECK(in_pieces == at_once, Shown(parts.rest()));
}

}  // namespace fencepost::fuzz
