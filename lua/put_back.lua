-- put_back: a held ticket returns to the queue, at its original order.
-- ARGV  4 ticket  5 the fence it was held with: doing it again does not touch a newer grant; 0 for one that was admitted
--       locally, and is not held here
-- Answer: see ask

--@include load
local frees, strict, joins, thorough = true, true, false, true
--@include enter

local ticket = ARGV[4]
call('HDEL', HASH, '-')
local place, its_fence, rest = string.match(value or '', '^(%x+)=(%d+)(.*)$')
if its_fence == ARGV[5] and call('ZREM', HELD, ticket) == 1 then
  used, holding = max(0, used - (tonumber(string.match(rest, '^ (%d+)')) or 1)), holding - 1
  call('ZADD', QUEUE, tonumber(place, 16), ticket)
  waiting = waiting + 1
  call('HSET', HASH, ticket, place .. rest)
end

local answer
--@include dispatch
--@include ticket
--@include finish
--@include reply
