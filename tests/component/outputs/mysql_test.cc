// What is MySQL's own: races, lost commits, words. Against MariaDB.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "consumer/outputs/mysql/mysql_connection.h"
#include "locking/base/fd.h"
#include "tests/component/outputs/store.h"
#include "tests/support/certificates.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class MysqlTest : public ::testing::Test {
 protected:
  MysqlTest() {
    store_.Exec(
        "CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int CHECK (amount <> 13))");
  }
  [[nodiscard]] static std::unique_ptr<Output> Made(MysqlOptions options, OutputTerms terms = {}) {
    options.columns = Columns({{"id", "key"}, {"amount", "json:/amount"}});
    return MakeMysqlOutput(options, "orders", "worker-1", std::move(terms));
  }
  [[nodiscard]] std::unique_ptr<Output> Open(OutputTerms terms = {}) const {
    return Made(store_.MysqlTable(), std::move(terms));
  }
  static Batch::Entry Entry(const std::string& id, Offset offset) {
    return {.id = id, .offset = offset, .value = R"({"amount":1})", .key = id};
  }

  Store store_{Store::Kind::kMysql};
};

TEST_F(MysqlTest, ARowThatAnotherTransactionHoldsIsWaitedForAndThenADuplicate) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const auto holder = store_.Hold(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/1', 1, now(6))");
  const Batch batch{Entry("a", 1)};
  auto results = ResultsAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits());
  holder->Exec("COMMIT");
  EXPECT_THAT(results.get(), ElementsAre(::testing::Ne(kCommitted)));
  EXPECT_EQ(store_.Exec("SELECT count(*) FROM effects"), "0");
}

TEST_F(MysqlTest, AnIdThatAnotherWriterInsertsMeanwhileMakesAllOfItBeDoneAgain) {
  const auto output = Open();
  const Batch first{Entry("b", 1)};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const auto holder =
      store_.Hold("UPDATE fencepost_ledger SET worker = 'w2' WHERE record_id = 'b'");
  const Batch batch{Entry("a", 2), Entry("b", 1)};
  auto write = WriteAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits()) << "it has seen that a is missing, and waits for b";
  store_.Exec(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/7', 1, now(6))");
  holder->Exec("COMMIT");
  EXPECT_TRUE(Failure(write.get()).retry_at_once);
  EXPECT_THAT(Results(*output, batch), ElementsAre(kFenced, kOwnEarlier));
  EXPECT_EQ(store_.Exec("SELECT id FROM effects"), "b");
}

TEST_F(MysqlTest, ARecordThatIsLargerThanAStatementMayBeIsItsOwnFault) {
  testing::MysqlServer server({.arguments = {"--max-allowed-packet=1M"}});
  server.Exec("CREATE DATABASE shop");
  server.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount longtext)", "shop");
  MysqlOptions options = server.Options("shop");
  options.host = "localhost";  // by TCP all the same
  options.table = "effects";
  const auto output = Made(options);
  Batch batch;
  batch.Add(Entry("a", 1));
  batch.Add({.id = "b",
             .offset = 2,
             .value = R"({"amount":")" + std::string(2 << 20, 'x') + "\"}",
             .key = "b"});
  batch.Add(Entry("c", 3));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted));
}

TEST_F(MysqlTest, WhatATriggerSaysOfARowThatIsUpdatedIsForItsDeadLetterAlone) {
  store_.Exec("INSERT INTO effects VALUES ('4111', 1)");
  store_.Exec(
      "CREATE TRIGGER t BEFORE UPDATE ON effects FOR EACH ROW BEGIN SET @said = concat('card ',"
      " NEW.id); SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1264, MESSAGE_TEXT = @said; END");
  MysqlOptions options = store_.MysqlTable();
  options.columns = Columns({{"id", "key"}, {"amount", "json:/amount?default"}});
  options.rules = {.on_conflict = OnConflict::kUpdate, .key = {"id"}};
  const Batch batch{{.id = "a", .value = "{}", .key = "4111"}};
  const auto outcomes = WriteAll(*MakeMysqlOutput(options, "orders", "worker-1", {}), batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kBadRecord);
  EXPECT_THAT((*outcomes)[0].detail, HasSubstr("card 4111"));
  EXPECT_THAT((*outcomes)[0].shown, ::testing::Not(HasSubstr("4111")));
}

TEST_F(MysqlTest, AClientThatIsFrozenInATransactionHoldsItsRowsForSecondsOnly) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  MysqlConnection frozen(store_.MysqlTable());
  ASSERT_TRUE(frozen.Connect() && frozen.Query("START TRANSACTION"));
  ASSERT_TRUE(frozen.Query(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/1', 1, now(6))"));
  const Batch batch{Entry("a", 1)};
  EXPECT_TRUE(testing::WaitUntil(std::chrono::seconds(60), "the row", [&] {
    const auto outcomes = WriteAll(*output, batch);
    return outcomes && outcomes->at(0).result == kCommitted;
  }));
  EXPECT_EQ(store_.Exec("SELECT worker FROM fencepost_ledger"), "worker-1");
}

TEST_F(MysqlTest, IdsAreBytes) {
  const auto output = Open();
  const Batch batch{Entry("a", 1), Entry("A", 2), Entry("a ", 3)};
  store_.Exec("ALTER TABLE effects DROP PRIMARY KEY, MODIFY id text");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kCommitted));
}

TEST_F(MysqlTest, TablesWithoutTransactionsAreRefusedForExactlyOnce) {
  store_.Exec("ALTER TABLE effects ENGINE=MyISAM");
  EXPECT_THAT(Refusal(*Open({.exactly_once = true})), HasSubstr("effects is MyISAM, which has no"));
  EXPECT_EQ(Refusal(*Open()), "");
}

TEST_F(MysqlTest, AServerThatForgetsInACrashWhatItAcknowledgedIsRefusedForExactlyOnce) {
  EXPECT_EQ(Refusal(*Open({.exactly_once = true})), "");
  for (const int value : {0, 2}) {
    store_.Exec(fmt::format("SET GLOBAL innodb_flush_log_at_trx_commit = {}", value));
    EXPECT_THAT(Refusal(*Open({.exactly_once = true})),
                HasSubstr(fmt::format("innodb_flush_log_at_trx_commit is {}", value)));
    EXPECT_EQ(Refusal(*Open()), "");
  }
  store_.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
}

TEST_F(MysqlTest, ALedgerWhoseKeyHoldsAPartOfAColumnIsRefused) {
  ASSERT_TRUE(Open()->Prepare());
  store_.Exec(
      "ALTER TABLE fencepost_ledger DROP PRIMARY KEY,"
      " ADD UNIQUE (pipeline, record_id, source(20))");
  EXPECT_FALSE(Open()->Prepare());
}

TEST_F(MysqlTest, ALoginThatIsRefusedIsNoRecordsDoing) {
  MysqlOptions options = store_.MysqlTable();
  options.user = "locked";
  options.password = "";
  store_.Exec("CREATE USER IF NOT EXISTS locked ACCOUNT LOCK");
  store_.Exec("GRANT ALL ON *.* TO locked");
  const auto output = Made(options);
  const auto written = WriteAll(*output, Batch{Entry("a", 1)});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().failure, WriteFailure::kUnavailable) << written.error().error.Line();
}

TEST_F(MysqlTest, AWrongPasswordAndAMissingDatabaseAreNamed) {
  MysqlOptions options = store_.MysqlTable();
  options.user = "nobody";
  EXPECT_THAT(Refusal(*Made(options)),
              AllOf(HasSubstr("Access denied"), HasSubstr("check user, password")));
  options = store_.MysqlTable();
  options.database = "none";
  EXPECT_THAT(Refusal(*Made(options)), HasSubstr("Unknown database"));
}

// What a connection with these options says when it is asked for its cipher, or why there is none.
std::string Cipher(const MysqlOptions& options) {
  MysqlConnection connection(options);
  if (const auto done = connection.Connect(); !done) return "refused: " + done.error().text;
  const auto rows = connection.Query("SHOW STATUS LIKE 'Ssl_cipher'");
  return rows ? rows->at(0).at(1).value_or("") : rows.error().text;
}

TEST_F(MysqlTest, TlsIsDemandedAndTheServersCertificateHasToBeForItsName) {
  testing::Certificates made("IP:127.0.0.1");
  const testing::Certificates others("IP:127.0.0.1");
  made.LetAllRead();
  testing::MysqlServer server({.arguments = {"--ssl-ca=" + made.ca(), "--ssl-key=" + made.key(),
                                             "--ssl-cert=" + made.certificate()}});
  server.Exec("CREATE USER shown@'127.0.0.1' REQUIRE X509; GRANT ALL ON *.* TO shown@'127.0.0.1'");
  MysqlOptions options = server.Options("mysql");
  EXPECT_EQ(Cipher(options), "") << "without tls";
  options.tls = true;
  options.tls_ca = made.ca();
  EXPECT_THAT(Cipher(options), HasSubstr("TLS_"));
  options.host = "localhost";
  EXPECT_THAT(Cipher(options), HasSubstr("refused: TLS/SSL error"))
      << "its certificate has no name";
  options.host = "127.0.0.1";
  options.user = "shown";
  EXPECT_THAT(Cipher(options), HasSubstr("refused: Access denied"));
  options.tls_certificate = made.certificate();
  options.tls_key = made.key();
  EXPECT_THAT(Cipher(options), HasSubstr("TLS_"));
  options.tls_ca = others.ca();
  EXPECT_THAT(Cipher(options), HasSubstr("refused: TLS/SSL error"));
  options.tls_ca = "";
  EXPECT_THAT(Cipher(options), HasSubstr("refused: TLS/SSL error")) << "the system's CAs";
  options = store_.MysqlTable();
  options.tls = true;
  options.tls_ca = made.ca();
  EXPECT_THAT(Cipher(options), HasSubstr("refused: ")) << "a server without TLS";
}

// What a client with the password "secret" tells a server that lets it log in by `plugin`.
std::string ToldTo(const std::string& plugin) {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  EXPECT_EQ(bind(listener.get(), address, size) + listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), address, &size), 0);
  std::string told;
  std::jthread server([&] {
    const Fd client(accept(listener.get(), nullptr, nullptr));
    const auto send_packet = [&](char number, const std::string& body) {
      const std::string head{static_cast<char>(body.size()), '\0', '\0', number};
      (void)send(client.get(), (head + body).data(), body.size() + 4, MSG_NOSIGNAL);
    };
    const auto nothing = [](std::size_t bytes) { return std::string(bytes, '\0'); };
    char buffer[4096];
    send_packet(0,
                "\x0a"
                "5.5.5-10.11.0-MariaDB" +
                    nothing(1) + "1234" + "12345678" + nothing(1) + "\x09\xa2\x21\x02" +
                    nothing(1) + "\x08" + nothing(1) + "\x15" + nothing(10) + "123456789012" +
                    nothing(1) + "mysql_native_password" + nothing(1));
    (void)recv(client.get(), buffer, sizeof buffer, 0);
    send_packet(2, "\xfe" + plugin + nothing(1) + "12345678901234567890" + nothing(1));
    const ssize_t n = recv(client.get(), buffer, sizeof buffer, 0);
    if (n > 0) told.assign(buffer, static_cast<std::size_t>(n));
  });
  MysqlConnection connection({.host = "127.0.0.1",
                              .port = ntohs(at.sin_port),
                              .user = "app",
                              .database = "shop",
                              .password = "secret"});
  EXPECT_FALSE(connection.Connect());
  server.join();
  return told;
}

TEST_F(MysqlTest, WithoutTlsNobodyIsToldThePasswordItself) {
  EXPECT_EQ(ToldTo("mysql_clear_password"), "");
  EXPECT_EQ(ToldTo("dialog"), "");
  EXPECT_NE(ToldTo("mysql_native_password"), "") << "a digest";
}

// To such a server the bytes of this text are other characters, behind which a quote ends a
// literal.
TEST_F(MysqlTest, AServerThatTakesNoClientsWordForItsCharactersReadsUtf8) {
  testing::MysqlServer server(
      {.arguments = {"--skip-character-set-client-handshake", "--character-set-server=gbk"}});
  server.Exec("CREATE DATABASE shop");
  server.Exec(
      "CREATE TABLE effects (id varchar(100) CHARACTER SET utf8mb4 PRIMARY KEY, amount int)",
      "shop");
  MysqlOptions options = server.Options("shop");
  options.table = store_.MysqlTable().table;
  const std::string odd = "\xe4\xb8\xad' OR 1=1 -- ";
  const auto output = Made(options);
  EXPECT_THAT(Results(*output, Batch{Entry(odd, 1)}), ElementsAre(kCommitted));
  const auto rows = server.Exec("SELECT hex(id) FROM effects", "shop");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0][0].value_or(""), "E4B8AD27204F5220313D31202D2D20");
}

TEST_F(MysqlTest, AFrozenServerIsLeftAtAnInterrupt) {
  testing::MysqlServer server;
  server.Exec("CREATE DATABASE shop");
  server.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int)", "shop");
  MysqlOptions options = server.Options("shop");
  options.table = "effects";
  const auto output = Made(options);
  ASSERT_TRUE(output->Prepare());
  kill(server.pid(), SIGSTOP);
  const Batch batch{Entry("a", 1)};
  auto write = WriteAside(*output, batch);
  output->Interrupt();
  EXPECT_EQ(Failure(write.get()).error.code, "interrupted");
  kill(server.pid(), SIGCONT);
}

}  // namespace
}  // namespace fencepost::consumer
