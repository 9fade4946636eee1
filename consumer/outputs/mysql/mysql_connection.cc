#include "consumer/outputs/mysql/mysql_connection.h"

#include <errmsg.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/failure_text.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

constexpr unsigned kConnectSeconds = 5;
constexpr unsigned kLiftedSeconds = 7 * 24 * 3600;
// A client that is frozen in a transaction holds its rows no longer. MySQL counts outside of
// transactions, too.
constexpr int kIdleSeconds = 20;
constexpr unsigned kPacketTooLarge = 1153;
// Those that do not tell the password itself. Without TLS whoever answers could ask for it.
constexpr const char* kLogins =
    "mysql_native_password,client_ed25519,parsec,caching_sha2_password,sha256_password,"
    "auth_gssapi_client";

std::string WhereOf(const MysqlOptions& options) {
  if (options.host.starts_with('/')) return fmt::format("{}/{}", options.host, options.database);
  return fmt::format("{}:{}/{}", options.host, options.port, options.database);
}

MysqlFailure Interrupted() {
  return {.kind = MysqlFailure::Kind::kInterrupted, .text = "interrupted for shutdown"};
}

struct FreeResult {
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};

// Escapes are on, and texts are UTF-8: a session of another mode, or of a server that takes no
// client's word for its characters (skip-character-set-client-handshake, init_connect), would read
// literals otherwise than they are written.
constexpr std::string_view kSession =
    "SET SESSION character_set_client = utf8mb4, character_set_connection = utf8mb4,"
    " character_set_results = utf8mb4, sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = "
    "'+00:00', autocommit = 1,"
    " innodb_lock_wait_timeout = 5, transaction_isolation = 'READ-COMMITTED'";

}  // namespace

MysqlConnection::MysqlConnection(MysqlOptions options)
    : options_(std::move(options)), where_(WhereOf(options_)) {
  static std::once_flag once;  // not by the first threads that connect
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
}

void MysqlConnection::Interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

bool MysqlConnection::IdleTooLong() const {
  return !mariadb() &&
         std::chrono::steady_clock::now() - used_ > std::chrono::seconds(kIdleSeconds / 2);
}

void MysqlConnection::Close() {
  {
    const std::lock_guard lock(mutex_);
    socket_ = -1;
  }
  if (connection_ != nullptr) mysql_close(connection_);
  connection_ = nullptr;
}

void MysqlConnection::LiftLimits() { call_seconds_ = kLiftedSeconds; }

tl::expected<void, MysqlFailure> MysqlConnection::Connect() {
  Close();
  {
    const std::lock_guard lock(mutex_);
    if (interrupted_) return tl::unexpected(Interrupted());
  }
  const auto password = options_.password.Read();
  if (!password) {
    return tl::unexpected(MysqlFailure{.text = "output.mysql.password: " + password.error()});
  }
  const auto began = std::chrono::steady_clock::now();
  connection_ = mysql_init(nullptr);
  const unsigned connect = kConnectSeconds;
  const unsigned call = call_seconds_;
  mysql_options(connection_, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
  mysql_options(connection_, MYSQL_OPT_READ_TIMEOUT, &call);
  mysql_options(connection_, MYSQL_OPT_WRITE_TIMEOUT, &call);
  mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const my_bool no = 0;
  const my_bool yes = 1;
  mysql_options(connection_, MYSQL_OPT_RECONNECT, &no);
  const unsigned no_files = 0;
  mysql_options(connection_, MYSQL_OPT_LOCAL_INFILE, &no_files);
  // What is not said here differs between versions of the library.
  const my_bool* const tls = options_.tls ? &yes : &no;
  mysql_options(connection_, MYSQL_OPT_SSL_ENFORCE, tls);
  mysql_options(connection_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, tls);
  if (options_.tls) {
    const auto path = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
    mysql_ssl_set(connection_, path(options_.tls_key), path(options_.tls_certificate),
                  path(options_.tls_ca), nullptr, nullptr);
  }
  const bool file = options_.host.starts_with('/');
  if (!options_.tls && !file) mysql_options(connection_, MARIADB_OPT_RESTRICTED_AUTH, kLogins);
  // To the library `localhost` is a socket's name.
  const unsigned protocol = file ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
  mysql_options(connection_, MYSQL_OPT_PROTOCOL, &protocol);
  if (mysql_real_connect(connection_, file ? nullptr : options_.host.c_str(), options_.user.c_str(),
                         password->c_str(), options_.database.c_str(),
                         file ? 0 : static_cast<unsigned>(options_.port),
                         file ? options_.host.c_str() : nullptr, 0) == nullptr) {
    return tl::unexpected(Failure(began, ""));
  }
  {
    const std::lock_guard lock(mutex_);
    socket_ = mysql_get_socket(connection_);
    if (interrupted_) ::shutdown(socket_, SHUT_RDWR);
  }
  return SetUp();
}

tl::expected<void, MysqlFailure> MysqlConnection::SetUp() {
  std::string session(kSession);
  // MySQL has the name, MariaDB before 11.1 has not.
  if (mariadb()) session.replace(session.find("transaction_isolation"), 21, "tx_isolation");
  if (call_seconds_ == kLiftedSeconds) {
    if (mariadb()) session += ", max_statement_time = 0";
  } else if (mariadb()) {
    session +=
        fmt::format(", max_statement_time = 25, idle_transaction_timeout = {}", kIdleSeconds);
  } else {
    session += fmt::format(", wait_timeout = {}", kIdleSeconds);
  }
  max_statement_ = 0;
  if (auto done = Query(session); !done) return tl::unexpected(done.error());
  const auto packet = Query("SELECT @@max_allowed_packet");
  if (!packet) return tl::unexpected(packet.error());
  const std::string text = packet->at(0).at(0).value_or("");
  std::from_chars(text.data(), text.data() + text.size(), max_statement_);
  return {};
}

MysqlFailure MysqlConnection::Failure(std::chrono::steady_clock::time_point began,
                                      std::string_view sql) {
  MysqlFailure failure;
  failure.code = mysql_errno(connection_);
  failure.sqlstate = mysql_sqlstate(connection_);
  failure.text = ErrorText(mysql_error(connection_));
  failure.of_write =
      sql.starts_with("INSERT") || sql.starts_with("UPDATE") || sql.starts_with("DELETE");
  const bool client = failure.code >= CR_MIN_ERROR && failure.code < 3000;
  const std::lock_guard lock(mutex_);
  if (interrupted_) {
    failure = Interrupted();
  } else if (!client) {
    failure.kind = MysqlFailure::Kind::kServer;
  } else if (std::chrono::steady_clock::now() - began >= std::chrono::seconds(call_seconds_)) {
    failure = {.kind = MysqlFailure::Kind::kTimeout,
               .code = failure.code,
               .text = fmt::format("no answer within {} s", call_seconds_)};
  }
  const bool close = failure.kind != MysqlFailure::Kind::kServer;
  if (close) {
    socket_ = -1;
    mysql_close(connection_);
    connection_ = nullptr;
  }
  return failure;
}

std::size_t MysqlConnection::Unchanged(std::size_t rows) const {
  if (rows == 1) return affected_ == 0 ? 1 : 0;
  // "Records: 5  Duplicates: 2  Warnings: 0"
  constexpr std::string_view kUpdated = "Duplicates: ";
  const char* const told = mysql_info(connection_);
  const std::string_view info = told == nullptr ? "" : told;
  const std::size_t at = info.find(kUpdated);
  std::size_t updated = 0;
  if (at != std::string_view::npos) {
    std::from_chars(info.data() + at + kUpdated.size(), info.data() + info.size(), updated);
  }
  return rows + updated - std::min(affected_, rows + updated);
}

tl::expected<MysqlConnection::Rows, MysqlFailure> MysqlConnection::Query(std::string_view sql) {
  if (!open()) return tl::unexpected(MysqlFailure{.text = "not connected"});
  // Sent all the same it would end the connection, each time.
  if (max_statement_ != 0 && sql.size() + 16 > max_statement_) {
    return tl::unexpected(
        MysqlFailure{.kind = MysqlFailure::Kind::kServer,
                     .code = kPacketTooLarge,
                     .sqlstate = "HY000",
                     .text = fmt::format("a statement of {} bytes is larger than the server's "
                                         "max_allowed_packet ({})",
                                         sql.size(), max_statement_)});
  }
  const auto began = std::chrono::steady_clock::now();
  if (mysql_real_query(connection_, sql.data(), sql.size()) != 0) {
    return tl::unexpected(Failure(began, sql));
  }
  used_ = std::chrono::steady_clock::now();
  affected_ = static_cast<std::size_t>(mysql_affected_rows(connection_));
  const std::unique_ptr<MYSQL_RES, FreeResult> result(mysql_store_result(connection_));
  if (result == nullptr) {
    if (mysql_errno(connection_) != 0) return tl::unexpected(Failure(began, sql));
    return Rows();
  }
  Rows rows;
  const unsigned fields = mysql_num_fields(result.get());
  while (const MYSQL_ROW row = mysql_fetch_row(result.get())) {
    const unsigned long* lengths = mysql_fetch_lengths(result.get());
    std::vector<Cell>& cells = rows.emplace_back(fields);
    for (unsigned i = 0; i < fields; ++i) {
      if (row[i] != nullptr) cells[i] = std::string(row[i], lengths[i]);
    }
  }
  if (mysql_errno(connection_) != 0) return tl::unexpected(Failure(began, sql));
  return rows;
}

std::string MysqlClientVersion() { return mysql_get_client_info(); }

void AppendText(std::string_view text, std::string& sql) {
  sql.push_back('\'');
  for (const char c : text) {
    if (c == '\0') {
      sql += "\\0";
      continue;
    }
    if (c == '\'' || c == '\\') sql.push_back('\\');
    sql.push_back(c);
  }
  sql.push_back('\'');
}

void AppendBytes(std::string_view bytes, std::string& sql) {
  sql.append("X'").append(ToHex(bytes)).push_back('\'');
}

std::string Quoted(std::string_view text) {
  std::string quoted;
  AppendText(text, quoted);
  return quoted;
}

}  // namespace fencepost::consumer
