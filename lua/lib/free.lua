-- free: of the release of `ticket`, held with `its_fence`, which was looked up as `held_fence`, and has `value`. Sets
-- `answer`: 1 (freed) | 0 (stale).

-- A ticket may be named twice.
if held_fence and tonumber(held_fence) == tonumber(its_fence) and call('ZREM', HELD, ticket) == 1 then
  local cost = tonumber(string.match(value or '', '^%x+ (%d+)')) or 1
  local slot_time = min(max(0, now - held_fence) * cost, 2 ^ 52)
  hold = hold == 0 and slot_time or hold + floor((slot_time - hold) / 8) -- an average that forgets
  call('HDEL', TICKETS, ticket)
  used, holding = max(0, used - cost), holding - 1
  answer = '1'
else
  call('HDEL', HASH, '-')
  answer = '0'
end
