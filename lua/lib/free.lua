-- free: of the release of `ticket`, held with `its_fence`, of which `value` is known. Sets `answer`: 1 (freed) | 0
-- (stale).

local held_fence, cost = string.match(value or '', '^%x+=(%d+) ?(%d*)')
if held_fence == its_fence then
  if call('ZREM', HELD, ticket) == 0 then torn = 1 end
  cost = tonumber(cost) or 1
  local slot_time = min(max(0, now - held_fence) * cost, 2 ^ 52)
  hold = hold == 0 and slot_time or hold + floor((slot_time - hold) / 8) -- an average that forgets
  call('HDEL', HASH, ticket)
  used, holding = max(0, used - cost), holding - 1
  answer = '1'
else
  call('HDEL', HASH, '-')
  answer = '0'
end
