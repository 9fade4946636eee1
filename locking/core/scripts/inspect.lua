#!lua flags=no-writes
-- Looks at locks and changes nothing. KEYS: the sentinel, then a name each. ARGV: max_skew (13
-- digits), then for each name ttl (13); both are unused. Formats and answers: locking/redis/wire.h.
local call, sub, format = redis.call, string.sub, string.format

local sentinel = call('GET', KEYS[1])
if not sentinel or sub(sentinel, 1, 1) ~= 'C' then
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local quarantined = now < tonumber(sub(sentinel, 90, 102))

local function inspect(key)
  local value = call('GET', key)
  if not value then
    return 'X'
  end
  local state = sub(value, 1, 1)
  if state == 'D' then
    return 'D' .. sub(value, 2, 28) .. format('%013d', math.max(0, call('PTTL', key)))
  elseif state == 'H' then
    return 'C' .. sub(value, 2, 20) .. format('%013d', math.max(0, sub(value, 53, 65) - now))
  elseif state == 'F' then
    return 'S' .. sub(value, 2, 20)
  end
  return '?'
end

local answers = {format('%013d', now) .. (quarantined and 'Q' or 'A')}
for i = 2, #KEYS do
  answers[i] = inspect(KEYS[i])
end
return table.concat(answers)
