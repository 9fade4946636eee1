#!lua flags=allow-oom
-- Gives locks back (abort and release). Only the caller's own; the token stays behind as the floor,
-- for a ttl, so that a lower token that is still under way comes too late. KEYS: the sentinel, then
-- a name each. ARGV: max_skew (13 digits), then for each name nonce (32) ttl (13). Formats and
-- answers: locking/redis/wire.h.
local call, sub, format = redis.call, string.sub, string.format

local sentinel = call('GET', KEYS[1])
if not sentinel or sub(sentinel, 1, 1) ~= 'C' then
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local quarantined = now < tonumber(sub(sentinel, 90, 102))
local skew = tonumber(ARGV[1])

-- A batch mostly has one ttl, so its texts are made once.
local known_ttl, deadline, expiry
local function use_ttl(ttl)
  if ttl ~= known_ttl then
    local ends = now + ttl
    known_ttl, deadline, expiry = ttl, format('%013d', ends), format('%d', ends + 2 * skew)
  end
end

local function free(key, ask)
  local value = call('GET', key)
  if not value then
    return 'X'
  end
  local state = sub(value, 1, 1)
  if state == 'H' then
    if sub(value, 21, 52) ~= sub(ask, 1, 32) then
      return 'O' .. sub(value, 2, 20)
    end
    use_ttl(sub(ask, 33, 45))
    call('SET', key, 'F' .. sub(value, 66, 84) .. deadline, 'PXAT', expiry)
    if now < tonumber(sub(value, 53, 65)) then
      return 'F'
    end
    return 'X'
  elseif state == 'F' then
    return 'X'
  elseif state == 'D' then
    return 'O' .. sub(value, 2, 20)
  end
  return '?'
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = free(KEYS[i], ARGV[i])
end
return table.concat(answers)
