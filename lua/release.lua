-- release: give permits back. A permit that was taken back already frees nothing.
-- ARGV  4.. pairs: ticket, fence
-- Answer: ok and a digit for each pair, 1 (freed) | 0 (stale). In brief: the digits.

--@include load
local frees, strict, joins, thorough = true, false, false, false
local values, fences = {}, {}
for i = 4, #ARGV, 2 do
  values[i], fences[i] = call('HGET', TICKETS, ARGV[i]), call('ZSCORE', HELD, ARGV[i])
  if not values[i] or not fences[i] then thorough = true end
end
--@include enter

local freed = {}
for i = 4, #ARGV, 2 do
  local ticket, its_fence = ARGV[i], tonumber(fences[i] or nil)
  -- A ticket may be named twice.
  if its_fence and its_fence == tonumber(ARGV[i + 1]) and call('ZREM', HELD, ticket) == 1 then
    local cost = tonumber(string.match(values[i] or '', '^%x+ (%d+)')) or 1
    local slot_time = min(max(0, now - its_fence) * cost, 2 ^ 52)
    hold = hold == 0 and slot_time or hold + floor((slot_time - hold) / 8) -- an average that forgets
    call('HDEL', TICKETS, ticket)
    used, holding = max(0, used - cost), holding - 1
    freed[#freed + 1] = '1'
  else
    call('HDEL', HASH, '-')
    freed[#freed + 1] = '0'
  end
end

--@include dispatch
--@include finish
local digits = table.concat(freed)
if same then return mine == '' and digits or digits .. ' ' .. mine end
return { 'ok', epoch, mine, version, digits }
