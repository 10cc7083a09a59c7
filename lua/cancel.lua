-- cancel: take tickets out of the queue, or give back a grant that crossed the cancel.
-- ARGV  7.. tickets
-- Answer: ok, then for each "queued" | "held" | "none": what it was

local stopped = enter(true, false, BARE)
if stopped then return stopped end
local verdicts = {}
for i = 7, #ARGV do
  local ticket = ARGV[i]
  local value = call('HGET', TICKETS, ticket)
  if not value then
    verdicts[#verdicts + 1] = 'none'
  elseif call('ZSCORE', HELD, ticket) then
    free(ticket, (unpack_ticket(value)))
    verdicts[#verdicts + 1] = 'held'
  else
    forget(ticket, QUEUE)
    verdicts[#verdicts + 1] = 'queued'
  end
end
dispatch()
return answer('ok', finish(), unpack(verdicts))
