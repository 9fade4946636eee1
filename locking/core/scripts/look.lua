#!lua flags=no-writes
-- Raw values of one moment, for commands. KEYS: the sentinel, then a name each. Answer: TIME (13
-- digits), the sentinel's length (3 digits), the sentinel, then for each name its value's length
-- (3 digits), the value, and for how many ms it is remembered (13 digits).
local call, sub, format = redis.call, string.sub, string.format

local sentinel = call('GET', KEYS[1])
if not sentinel or sub(sentinel, 1, 1) ~= 'C' then
  return redis.error_reply('NOSENTINEL this node does not remember a complete lock store')
end
local time = call('TIME')
local answers = {
  format('%013d%03d', time[1] * 1000 + math.floor(time[2] / 1000), #sentinel) .. sentinel,
}
for i = 2, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  if type(value) == 'table' and sub(value.err, 1, 10) ~= 'WRONGTYPE ' then
    return value
  end
  if type(value) ~= 'string' then
    -- Absent, or not a string and so not a lock.
    answers[i] = value and '001?0000000000000' or '0000000000000000'
  else
    local left = call('PTTL', KEYS[i])
    if left < 0 then
      left = 999999999999
    end
    value = sub(value, 1, 999)
    answers[i] = format('%03d', #value) .. value .. format('%013d', left)
  end
end
return table.concat(answers)
