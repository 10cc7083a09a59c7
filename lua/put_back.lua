-- put_back: a held ticket returns to the queue, at its original order.
-- ARGV  7 ticket
-- Answer: as acquire's, or gone

local frees, strict, joins = true, true, false
--@include enter

local ticket = ARGV[7]
call('HDEL', HASH, '-')
if call('ZREM', HELD, ticket) == 1 then
  local place, cost = string.match(call('HGET', TICKETS, ticket), '^(%x+) ?(%d*)')
  used, holding = max(0, used - (tonumber(cost) or 1)), holding - 1
  call('ZADD', QUEUE, tonumber(place, 16), ticket)
  waiting = waiting + 1
end

--@include dispatch
--@include finish
--@include ticket
