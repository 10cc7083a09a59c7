-- revoke: an operator takes a permit or a place in line away. Its owner is told.
-- ARGV  4 ticket
-- Answer: held | queued | unknown: what it was

--@include load
local frees, strict, joins, thorough = true, false, false, true
--@include enter

call('HDEL', HASH, '-')
local ticket, was = ARGV[4], 'unknown'
local value = ticket ~= '.' and call('HGET', TICKETS, ticket)
if value then
  local owner, number = string.match(ticket, '^(.-):(%d+)$')
  call('HDEL', TICKETS, ticket)
  if call('ZREM', QUEUE, ticket) == 1 then
    waiting = waiting - 1
    messages = { [owner] = 'v,' .. number }
    was = 'queued'
  else
    call('ZREM', HELD, ticket)
    used, holding = max(0, used - (tonumber(string.match(value, '^%x+ (%d+)')) or 1)), holding - 1
    revokes = revokes + 1
    messages = { [owner] = 'r,' .. number }
    was = 'held'
  end
end

--@include dispatch
--@include finish
return { was, epoch, mine, version }
