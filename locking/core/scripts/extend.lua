#!lua flags=allow-oom
-- Gives own leases a new deadline. By nonce only; never creates a key, never revives a lease. KEYS:
-- the sentinel, then a name each. ARGV: max_skew (13 digits), then for each name nonce (32) ttl
-- (13). Formats and answers: locking/redis/wire.h.
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

local function extend(key, ask)
  local value = call('GET', key)
  if not value then
    return 'X'
  end
  local state = sub(value, 1, 1)
  if state == 'H' then
    if sub(value, 21, 52) ~= sub(ask, 1, 32) then
      return 'O' .. sub(value, 2, 20)
    elseif now >= tonumber(sub(value, 53, 65)) then
      return 'X'
    end
    use_ttl(sub(ask, 33, 45))
    call('SET', key, sub(value, 1, 52) .. deadline .. sub(value, 66, 84), 'PXAT', expiry)
    return 'E'
  elseif state == 'F' then
    return 'X'
  elseif state == 'D' then
    return 'D' .. sub(value, 2, 28) .. format('%013d', math.max(0, call('PTTL', key)))
  end
  return '?'
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = extend(KEYS[i], ARGV[i])
end
return table.concat(answers)
