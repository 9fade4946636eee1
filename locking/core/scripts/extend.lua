#!lua flags=allow-oom
-- Gives own leases a new deadline. By nonce only; never creates a key, never revives a lease. ARG:
-- nonce (16 bytes) [ttl].
local skew, common_ttl = tonumber(sub(ARGV[1], 1, 13)), tonumber(sub(ARGV[1], 14, 26))
local known_ttl, head, expiry
for i = 2, #KEYS do
  local key, ask, ttl = KEYS[i], ARGV[i], common_ttl
  local value = call('GET', key)
  local state = value and byte(value)
  local answer = 'X'
  if state == 72 then -- H
    if sub(value, 29, 44) ~= sub(ask, 1, 16) then
      answer = 'O' .. sub(value, 13, 28)
    elseif now < tonumber(sub(value, 2, 12), 16) then
      ttl = ttl or tonumber(sub(ask, 17, 29))
      if ttl ~= known_ttl then
        known_ttl, head = ttl, format('H%011x', now + ttl)
        expiry = format('%d', now + ttl + 2 * skew)
      end
      call('SET', key, head .. sub(value, 13), 'PXAT', expiry)
      answer = 'E'
    end
  elseif state == 68 then -- D
    answer = 'D' .. sub(value, 2, 25) .. format('%013d', math.max(0, call('PTTL', key)))
  elseif state and state ~= 70 then -- F
    answer = '?'
  end
  answers[i + 2] = answer
end
return table.concat(answers)
