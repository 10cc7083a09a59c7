-- put_back: a held ticket returns to the queue, at its original order.
-- ARGV  4 ticket  5 the fence it was held with: doing it again does not touch a newer grant; 0 for one that was admitted
--       locally, and is not held here
-- Answer: see ask

--@include load
local frees, strict, joins, thorough = true, true, false, true
--@include enter

local ticket = ARGV[4]
call('HDEL', HASH, '-')
local its_fence = tonumber(call('ZSCORE', HELD, ticket) or 0)
if its_fence ~= 0 and its_fence == tonumber(ARGV[5]) then
  call('ZREM', HELD, ticket)
  local place, cost = string.match(call('HGET', TICKETS, ticket), '^(%x+) ?(%d*)')
  used, holding = max(0, used - (tonumber(cost) or 1)), holding - 1
  call('ZADD', QUEUE, tonumber(place, 16), ticket)
  waiting = waiting + 1
end

local answer
--@include dispatch
--@include ticket
--@include finish
--@include reply
