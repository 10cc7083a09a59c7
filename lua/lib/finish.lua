-- finish: writes the record, pushes the expiry of the keys ahead, and tells the owners. PUBLISH comes last, and a
-- denied or failed one changes nothing: the poll finds what it did not deliver.

if now - kept > idle / 8 then
  kept, cold = now, nil
  for _, key in ipairs(KEYS) do
    call('PEXPIRE', key, floor(idle / 1000))
  end
end
local packed = struct.pack('<ddddddddddd', now, order, fence, used, waiting, holding, due, hold, granted, looked, torn)
  .. (cold or struct.pack('<ddddddddddddddddd', epoch, skew, limit, max_queue, lease, idle, paused, version, grace, calm,
    excused, gaps, sweeping, swept, again, revokes, kept) .. '2')
if writes then call('HSET', HASH, 'state', packed, unpack(writes)) else call('HSET', HASH, 'state', packed) end
if messages then
  if messages[ME] then
    mine = mine == '' and messages[ME] or mine .. ' ' .. messages[ME]
    messages[ME] = nil
  end
  for owner, text in pairs(messages) do
    redis.pcall('PUBLISH', 'fq:' .. owner, format('%d %s|%s', epoch, text, HASH))
  end
end
