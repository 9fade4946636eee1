#!lua flags=allow-oom
-- Compare-and-set of the sentinel (store.h). KEYS: the sentinel. ARGV: what must stand
-- there ('' for nothing), what to write, and for how many ms from now the node is in quarantine (''
-- to keep the replacement's own time). Answer: TIME (13 digits), then what is there afterwards.
local current = redis.call('GET', KEYS[1]) or ''
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if current == ARGV[1] then
  current = ARGV[2]
  if ARGV[3] ~= '' then
    current = string.sub(current, 1, 89) .. string.format('%013d', now + ARGV[3])
      .. string.sub(current, 103)
  end
  redis.call('SET', KEYS[1], current)
end
return string.format('%013d', now) .. current
