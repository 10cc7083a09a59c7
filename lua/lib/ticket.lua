-- ticket: what has become of `ticket`, as `answer` (see ask).

local value = call('HGET', TICKETS, ticket)
local its_fence = value and call('ZSCORE', HELD, ticket)
local place = value and tonumber(string.match(value, '^%x+'), 16)
if its_fence then
  answer = format('g%d,%d', tonumber(its_fence), place)
elseif value then
  local position = call('ZRANK', QUEUE, ticket) + 1
  -- Milliseconds until it is likely served: as many hold times as there are rounds of the limit before it (Little's
  -- law, with the mean of hold time times cost); -1 when nothing is known yet.
  answer = format('q%d,%d,%d', place, position, hold > 0 and limit > 0 and floor(position * hold / limit / 1000) or -1)
else
  answer = 'n'
end
