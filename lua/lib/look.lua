-- look: who has died, without waiting for the end of the lease? A process that is gone has closed its sockets, so its
-- subscription is gone, too. Whoever listened here and does so no more is suspected; unless it reports, or is heard of
-- on its channel again, it is taken for dead after a while. Now and then, when somebody wants a slot that is not free.
-- Only those judge who listen here themselves, and only those are judged: across a cluster's nodes nobody can tell.
--
-- A suspect's record has forgotten which version of the configuration it was told, so that its next call is looked at
-- closely, and clears it.

local LOOK, SUSPICION, MOST = 200000, 700000, 64 -- microseconds, microseconds, instances

if now - looked > LOOK and now >= calm and (waiting > 0 or used >= limit) and string.find(HEADER, LISTENING) then
  looked = now
  local names, fields, channels = call('ZRANGE', INSTANCES, 0, MOST - 1), {}, {} -- the longest silence first
  for i, name in ipairs(names) do
    fields[i], channels[i] = 'i:' .. name, 'fq:' .. name
  end
  local records, listeners = call('HMGET', HASH, unpack(fields)), redis.pcall('PUBSUB', 'NUMSUB', unpack(channels))
  for i, name in ipairs(names) do
    local its_record, is_there = records[i], (listeners[2 * i] or 1) > 0
    if its_record and name ~= ME and string.find(its_record, LISTENING, 25) then
      local expiry, its_version, since = struct.unpack('<ddd', its_record)
      if is_there and since > 0 or not is_there and since == 0 then
        since = is_there and 0 or now
        call('HSET', HASH, fields[i], struct.pack('<ddd', expiry, 0, since) .. string.sub(its_record, 25))
      elseif not is_there and now - since > SUSPICION then
        call('ZADD', INSTANCES, 0, name) -- its time has passed
        due = 0
      end
    end
  end
end
