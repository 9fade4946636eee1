#!lua
-- Asks for locks. KEYS: the sentinel, then a name each. ARGV: max_skew (13 digits), then for each
-- name token (19) nonce (32) ttl (13). Formats and answers: locking/redis/wire.h. The order of the
-- checks is part of the protocol. Tokens are compared as text: a Lua number holds only 53 bits.
local call, sub, format = redis.call, string.sub, string.format

local sentinel = call('GET', KEYS[1])
if not sentinel or sub(sentinel, 1, 1) ~= 'C' then
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local quarantined = now < tonumber(sub(sentinel, 90, 102))
local max_ttl = sub(sentinel, 104, 111)
local skew = tonumber(ARGV[1])

-- The lowest token of a wall time: (ms - 2024-01-01) << 20, in two halves that a double can hold.
local function token_at(ms)
  local since = math.max(0, ms - 1704067200000)
  local low = since % 1000000 * 1048576
  local high = math.floor(since / 1000000) * 1048576 + math.floor(low / 1000000)
  return format('%013d%06d', high, low % 1000000)
end
local lowest, too_high = token_at(now - skew), token_at(now + skew + 1)

-- A batch mostly has one ttl, so its texts are made once.
local known_ttl, deadline, expiry, ttl_refused
local function use_ttl(ttl)
  if ttl ~= known_ttl then
    local ends = now + ttl
    known_ttl, deadline, expiry = ttl, format('%013d', ends), format('%d', ends + 2 * skew)
    ttl_refused = tonumber(ttl) > tonumber(max_ttl)
  end
end

local function acquire(key, ask)
  local token = sub(ask, 1, 19)
  local acceptable = token < too_high and token >= lowest
  use_ttl(sub(ask, 52, 64))
  local held = 'H' .. sub(ask, 1, 51) .. deadline .. token
  local value
  if acceptable and not ttl_refused then
    -- Mostly the name is absent: one command both looks and takes it.
    value = call('SET', key, held, 'NX', 'GET', 'PXAT', expiry)
    if not value then
      return 'G'
    end
  else
    value = call('GET', key)
  end
  local granted = 'G'
  if value then
    local state = sub(value, 1, 1)
    local floor
    if state == 'D' then
      return 'D' .. sub(value, 2, 28) .. format('%013d', math.max(0, call('PTTL', key)))
    elseif state == 'H' then
      if sub(value, 2, 52) == sub(ask, 1, 51) then
        return 'G'
      end
      local rest = sub(value, 53, 65) - now
      if rest > 0 then
        return 'C' .. sub(value, 2, 20) .. format('%013d', rest)
      end
      granted = 'T'
      floor = sub(value, 66, 84)
    elseif state == 'F' then
      floor = sub(value, 2, 20)
    else
      return '?'
    end
    if token <= floor then
      return 'S' .. floor
    end
  end
  if token >= too_high then
    return 'A'
  elseif token < lowest then
    return 'B'
  end
  if ttl_refused then
    return 'L'
  end
  call('SET', key, held, 'PXAT', expiry)
  return granted
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = acquire(KEYS[i], ARGV[i])
end
return table.concat(answers)
