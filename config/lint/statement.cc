#include "config/lint/statement.h"

#include <algorithm>
#include <string>

namespace fencepost::config {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsName(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

class Look {
 public:
  explicit Look(std::string_view sql) : sql_(sql) {}

  StatementLook Run() {
    while (at_ < sql_.size()) {
      const char c = sql_[at_];
      if (SkipComment() || SkipQuoted() || SkipDollars()) continue;
      if (ended_ && !IsBlank(c) && c != ';') look_.several = true;
      if (c == ';') ended_ = true;
      ++at_;
    }
    return look_;
  }

 private:
  bool SkipTo(std::string_view end, std::size_t from) {
    const std::size_t found = sql_.find(end, from);
    at_ = found == std::string_view::npos ? sql_.size() : found + end.size();
    return true;
  }

  bool SkipComment() {
    const std::string_view rest = sql_.substr(at_);
    if (rest.starts_with("--")) return SkipTo("\n", at_ + 2);
    if (!rest.starts_with("/*")) return false;
    for (int depth = 0; at_ < sql_.size();) {  // they nest
      const std::string_view here = sql_.substr(at_, 2);
      depth += here == "/*" ? 1 : here == "*/" ? -1 : 0;
      at_ += here == "/*" || here == "*/" ? 2 : 1;
      if (depth == 0) break;
    }
    return true;
  }

  // A doubled quote is two texts side by side, which ends at the same place. \' only in E'…'.
  bool SkipQuoted() {
    const char quote = sql_[at_];
    if (quote != '\'' && quote != '"') return false;
    if (ended_) look_.several = true;
    const bool escapes = quote == '\'' && at_ > 0 && (sql_[at_ - 1] == 'E' || sql_[at_ - 1] == 'e');
    for (++at_; at_ < sql_.size() && sql_[at_] != quote; ++at_) {
      if (escapes && sql_[at_] == '\\') ++at_;
    }
    ++at_;
    return true;
  }

  // $1 is a parameter, $$ or $tag$ begins a text; a name may hold a $.
  bool SkipDollars() {
    if (sql_[at_] != '$' || (at_ > 0 && IsName(sql_[at_ - 1]))) return false;
    std::size_t end = at_ + 1;
    while (end < sql_.size() && IsName(sql_[end])) ++end;
    const std::string word(sql_.substr(at_ + 1, end - at_ - 1));
    if (ended_) look_.several = true;
    if (!word.empty() && std::all_of(word.begin(), word.end(), IsDigit)) {
      look_.parameters.insert(word.size() > 5 ? 100'000 : std::stoi(word));
      at_ = end;
      return true;
    }
    const bool opens = end < sql_.size() && sql_[end] == '$' && (word.empty() || !IsDigit(word[0]));
    if (!opens) return false;
    return SkipTo("$" + word + "$", end + 1);
  }

  std::string_view sql_;
  std::size_t at_ = 0;
  bool ended_ = false;
  StatementLook look_;
};

}  // namespace

StatementLook LookAtStatement(std::string_view sql) { return Look(sql).Run(); }

}  // namespace fencepost::config
