-- finish: writes the record, pushes the expiry of the keys ahead, and tells the owners. PUBLISH comes last, and a
-- denied or failed one changes nothing: the poll finds what it did not deliver.

if now - kept > idle / 8 then
  kept = now
  for _, key in ipairs(KEYS) do
    call('PEXPIRE', key, floor(idle / 1000))
  end
end
call('HSET', HASH, 'state', struct.pack('<dddddddddddddddddddddddddddd', epoch, now, skew, order, fence, used, limit,
  max_queue, lease, idle, paused, version, grace, calm, due, sweeping, swept, again, revokes, hold, granted, kept,
  excused, looked, gaps, waiting, holding, torn))
if messages then
  if messages[ME] then
    mine = mine == '' and messages[ME] or mine .. ' ' .. messages[ME]
    messages[ME] = nil
  end
  for owner, text in pairs(messages) do
    redis.pcall('PUBLISH', 'fq:' .. owner, format('%d %s|%s', epoch, text, HASH))
  end
end
