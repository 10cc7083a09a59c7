-- put_back: a held ticket returns to the queue, at its original order.
-- ARGV  7 ticket  8 the fence it was held with: doing it again does not touch a newer grant; 0 for one that was admitted
--       locally, and is not held here
-- Answer: as acquire's, or gone

local frees, strict, joins = true, true, false
--@include enter

local ticket = ARGV[7]
call('HDEL', HASH, '-')
local its_fence = tonumber(call('ZSCORE', HELD, ticket) or 0)
if its_fence ~= 0 and its_fence == tonumber(ARGV[8]) then
  call('ZREM', HELD, ticket)
  local place, cost = string.match(call('HGET', TICKETS, ticket), '^(%x+) ?(%d*)')
  used, holding = max(0, used - (tonumber(cost) or 1)), holding - 1
  call('ZADD', QUEUE, tonumber(place, 16), ticket)
  waiting = waiting + 1
end

--@include dispatch
--@include finish
--@include ticket
