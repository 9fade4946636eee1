#!lua flags=allow-oom
-- Gives locks back (abort and release). Only the caller's own; the token stays behind as the floor,
-- so that a lower token that is still under way comes too late, as long as the lease would have
-- stood: after that the node refuses such a token for its age. ARG: F token (16 hex digits) nonce
-- (16 bytes). COMMON may end in W: publish what is freed.
local tell = sub(ARGV[1], 27) == 'W'
for i = 2, #KEYS do
  local key, ask = KEYS[i], ARGV[i]
  -- Mostly the lock is the caller's own: one command both looks and frees it. What is not goes
  -- back as it was, its expiry untouched, before anybody can see that it was away.
  local value = pcall('SET', key, sub(ask, 1, 17), 'XX', 'GET', 'KEEPTTL')
  local answer, freed = 'X', false
  if value then
    if #value == 44 and sub(value, 13) == sub(ask, 2) then
      answer = tonumber(sub(value, 2, 12), 16) > now and 'F' or 'X'
      freed = true
    else
      local state = state_of(value)
      if state == 72 and sub(value, 29, 44) == sub(ask, 18, 33) then -- H
        local floor = #value > 44 and sub(value, 45, 60) or sub(value, 13, 28)
        call('SET', key, 'F' .. floor, 'KEEPTTL')
        answer = tonumber(sub(value, 2, 12), 16) > now and 'F' or 'X'
        freed = true
      else
        if type(value) == 'string' then
          call('SET', key, value, 'KEEPTTL')
        end
        if state == 72 then -- H
          answer = 'O' .. sub(value, 13, 28)
        elseif state == 68 then -- D
          answer = 'O' .. sub(value, 2, 17)
        elseif state ~= 70 then -- F
          answer = '?'
        end
      end
    end
  end
  if freed and tell then
    redis.pcall('PUBLISH', key, '') -- without the right to, waiters poll
  end
  answers[i + 2] = answer
end
return table.concat(answers)
