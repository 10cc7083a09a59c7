-- revoke: an operator takes a permit or a place in line away.
-- ARGV  7 ticket
-- Answer: held | queued | unknown: what it was

local stopped = enter(true, false, false)
if stopped then return stopped end
local ticket, was = ARGV[7], 'unknown'
local value = call('HGET', TICKETS, ticket)
if value and call('ZSCORE', HELD, ticket) then
  free(ticket, (unpack_ticket(value)))
  put('revokes', s.revokes + 1)
  tell(ticket, 'r')
  was = 'held'
elseif value and ticket ~= SENTINEL then
  forget(ticket, QUEUE)
  tell(ticket, 'v')
  was = 'queued'
end
dispatch()
return answer(was, finish())
