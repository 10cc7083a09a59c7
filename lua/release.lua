-- release: give permits back. A permit that was taken back already frees nothing.
-- ARGV  7.. pairs: ticket, fence
-- Answer: ok, then for each pair "ok" | "stale"

local stopped = enter(true, false, false)
if stopped then return stopped end
local verdicts = {}
for i = 7, #ARGV, 2 do
  local ticket = ARGV[i]
  local fence = tonumber(call('ZSCORE', HELD, ticket) or nil)
  if fence and fence == tonumber(ARGV[i + 1]) then
    local cost = unpack_ticket(call('HGET', TICKETS, ticket))
    local slot_time = max(0, s.now - fence) * cost
    put('hold', s.hold == 0 and slot_time or s.hold + floor((slot_time - s.hold) / 8))
    free(ticket, cost)
    verdicts[#verdicts + 1] = 'ok'
  else
    verdicts[#verdicts + 1] = 'stale'
  end
end
dispatch()
return answer('ok', finish(), unpack(verdicts))
