#!lua
-- Gives a node in quarantine back what it has forgotten: a compare-and-set for each name. What is
-- written was decided from what stands on all nodes (heal.h). KEYS: the sentinel, then
-- a name each. ARGV: the sentinel as it was read, then for each name what must stand there ('' for
-- nothing), and for how many ms it is remembered (13 digits) with the new value behind. Answer:
-- TIME (13 digits), then for each name W (written) or C (something else stood there).
local call, sub, format = redis.call, string.sub, string.format

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local sentinel = call('GET', KEYS[1])
if sentinel ~= ARGV[1] or now >= tonumber(sub(sentinel, 90, 102)) then
  return redis.error_reply('NOSENTINEL the quarantine is over, or is not the one that was read')
end
local answers = {format('%013d', now)}
for i = 2, #KEYS do
  local write = ARGV[2 * i - 1]
  local value = redis.pcall('GET', KEYS[i])
  if type(value) == 'table' and sub(value.err, 1, 10) ~= 'WRONGTYPE ' then
    return value
  end
  if (value or '') == ARGV[2 * i - 2] then
    call('SET', KEYS[i], sub(write, 14), 'PXAT', format('%d', now + sub(write, 1, 13)))
    answers[i] = 'W'
  else
    answers[i] = 'C'
  end
end
return table.concat(answers)
