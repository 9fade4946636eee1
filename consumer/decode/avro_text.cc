#include "consumer/decode/avro_text.h"

#include <openssl/bn.h>

#include <iterator>
#include <memory>

#include <fmt/format.h>

#include "locking/base/time_text.h"

namespace fencepost::consumer::avro {
namespace {

constexpr std::size_t kMaxScale = 4096;
constexpr std::int64_t kSecondsOfDay = 86'400;

}  // namespace

bool AppendDecimal(std::string_view bytes, std::size_t scale, std::string& out) {
  if (bytes.size() > kMaxDecimalBytes || scale > kMaxScale) return false;
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes[0]) & 0x80) != 0;
  std::string plain(bytes);  // of a negative number -1 - number
  for (char& byte : plain) byte = static_cast<char>(negative ? ~byte : byte);
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(plain.data()),
                static_cast<int>(plain.size()), nullptr),
      &BN_free);
  if (negative) BN_add_word(number.get(), 1);
  char* const text = BN_bn2dec(number.get());
  std::string digits = text;
  OPENSSL_free(text);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (negative) out.push_back('-');
  out.append(digits, 0, digits.size() - scale);
  if (scale > 0) out.append(1, '.').append(digits, digits.size() - scale);
  return true;
}

bool AppendMoment(std::int64_t units, const MomentForm& form, std::string& out) {
  const std::int64_t second = form.UnitsOfSecond();
  const std::int64_t rest = units % second;
  const PointInTime point{
      .seconds = form.time ? units / second - (rest < 0 ? 1 : 0) : units * kSecondsOfDay,
      .nanos =
          static_cast<std::uint32_t>((rest < 0 ? rest + second : rest) * (1'000'000'000 / second))};
  const std::int64_t first = form.date ? kYear1 : 0;
  const std::int64_t last = form.date ? kYear9999 : kSecondsOfDay - 1;
  if (point.seconds < first || point.seconds > last) return false;
  std::string text;
  AppendDateTime(point, 'T', form.digits, text);
  constexpr std::size_t kDate = 10;
  if (!form.time) text.resize(kDate);
  if (!form.date) text.erase(0, kDate + 1);
  out.append(text).append(form.utc ? "Z" : "");
  return true;
}

void AppendUuid(std::string_view bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push_back('-');
    fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(bytes[i]));
  }
}

}  // namespace fencepost::consumer::avro
