-- release: give permits back. A permit that was taken back already frees nothing.
-- ARGV  7.. pairs: ticket, fence
-- Answer: ok, then for each pair 1 (freed) | 0 (stale)

local frees, strict, joins = true, false, false
--@include enter

local freed = {}
for i = 7, #ARGV, 2 do
  local ticket = ARGV[i]
  local its_fence = tonumber(call('ZSCORE', HELD, ticket) or 0)
  if its_fence ~= 0 and its_fence == tonumber(ARGV[i + 1]) then
    local cost = tonumber(string.match(call('HGET', TICKETS, ticket) or '', '^%x+ (%d+)')) or 1
    local slot_time = min(max(0, now - its_fence) * cost, 2 ^ 52)
    hold = hold == 0 and slot_time or hold + floor((slot_time - hold) / 8) -- an average that forgets
    call('ZREM', HELD, ticket)
    call('HDEL', TICKETS, ticket)
    used, holding = max(0, used - cost), holding - 1
    freed[#freed + 1] = 1
  else
    call('HDEL', HASH, '-')
    freed[#freed + 1] = 0
  end
end

--@include dispatch
--@include finish
return { 'ok', epoch, mine, version, unpack(freed) }
