#!lua flags=allow-oom
-- Marks names as complete, whatever their state: it is evidence. A mark that is there stays. KEYS:
-- the sentinel, then a name each. ARGV: max_skew (13 digits), then for each name token (19) nonce
-- (32) remember_done (13) crc (8). Formats and answers: locking/redis/wire.h.
local call, sub, format = redis.call, string.sub, string.format

local sentinel = call('GET', KEYS[1])
if not sentinel or sub(sentinel, 1, 1) ~= 'C' then
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local quarantined = now < tonumber(sub(sentinel, 90, 102))

-- The lowest token of a wall time: (ms - 2024-01-01) << 20, in two halves that a double can hold.
local function token_at(ms)
  local since = math.max(0, ms - 1704067200000)
  local low = since % 1000000 * 1048576
  local high = math.floor(since / 1000000) * 1048576 + math.floor(low / 1000000)
  return format('%013d%06d', high, low % 1000000)
end
-- A token from a clock far ahead must not become a floor that nobody else can pass.
local highest = token_at(now + tonumber(ARGV[1]))

-- A batch mostly has one remember_done, so its text is made once.
local known_remember, expiry
local function use_remember(remember)
  if remember ~= known_remember then
    known_remember, expiry = remember, format('%d', now + remember)
  end
end

local function done(key, ask)
  local value = call('GET', key)
  local crc = sub(ask, 65, 72)
  local answer = 'N'
  if value then
    local state = sub(value, 1, 1)
    if state == 'D' then
      if sub(value, 21, 28) == crc then
        return 'Y' .. sub(value, 2, 20)
      end
      return 'Z' .. sub(value, 2, 28)
    elseif state == 'H' then
      if sub(value, 21, 52) == sub(ask, 20, 51) and now < tonumber(sub(value, 53, 65)) then
        answer = 'M'
      end
    elseif state ~= 'F' then
      return '?'
    end
  end
  local token = sub(ask, 1, 19)
  if token > highest then
    token = highest
  end
  use_remember(sub(ask, 52, 64))
  call('SET', key, 'D' .. token .. crc, 'PXAT', expiry)
  return answer
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = done(KEYS[i], ARGV[i])
end
return table.concat(answers)
