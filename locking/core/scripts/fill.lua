#!lua flags=allow-oom
-- Carries a lease that a majority granted to the nodes that lack it. Ignores the order of tokens: a
-- rival that failed must not keep the holder out. Lengthens nothing. KEYS: the sentinel, then a
-- name each. ARGV: max_skew (13 digits), then for each name token (19) nonce (32) ttl (13). Formats
-- and answers: locking/redis/wire.h.
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

local function fill(key, ask)
  local value = call('GET', key)
  local token = sub(ask, 1, 19)
  local floor = token
  if value then
    local state = sub(value, 1, 1)
    if state == 'D' then
      return 'D' .. sub(value, 2, 28) .. format('%013d', math.max(0, call('PTTL', key)))
    elseif state == 'H' then
      local rest = sub(value, 53, 65) - now
      if rest > 0 then
        if sub(value, 21, 52) == sub(ask, 20, 51) then
          return 'I'
        end
        return 'C' .. sub(value, 2, 20) .. format('%013d', rest)
      end
      floor = sub(value, 66, 84)
    elseif state == 'F' then
      floor = sub(value, 2, 20)
    else
      return '?'
    end
    if floor < token then
      floor = token
    end
  end
  use_ttl(sub(ask, 52, 64))
  call('SET', key, 'H' .. sub(ask, 1, 51) .. deadline .. floor, 'PXAT', expiry)
  return 'I'
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = fill(KEYS[i], ARGV[i])
end
return table.concat(answers)
