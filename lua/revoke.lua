-- revoke: an operator takes a permit or a place in line away. Its owner is told.
-- ARGV  4 ticket
-- Answer: held | queued | unknown: what it was

--@include load
local frees, strict, joins, thorough = true, false, false, true
--@include enter

call('HDEL', HASH, '-')
local ticket, was = ARGV[4], 'unknown'
local owner, number = string.match(ticket, '^(.-):(%d+)$')
if owner and call('ZREM', QUEUE, ticket) == 1 then
  waiting = waiting - 1
  messages = { [owner] = 'v,' .. number }
  was = 'queued'
elseif owner and call('ZREM', HELD, ticket) == 1 then
  used, holding = max(0, used - (tonumber(string.match(value or '', '^%S+ (%d+)')) or 1)), holding - 1
  revokes, cold = revokes + 1, nil
  messages = { [owner] = 'r,' .. number }
  was = 'held'
end
if was ~= 'unknown' then call('HDEL', HASH, ticket) end

--@include dispatch
--@include finish
return { was, epoch, mine, version }
