-- look: who has died, without waiting for the end of the lease? A process that is gone has closed its sockets, so its
-- subscription is gone, too. Whoever listened here and does so no more is suspected; unless it reports, or is heard of
-- on its channel again, it is taken for dead after a while. Now and then, when somebody wants a slot that is not free.
-- Only those judge who listen here themselves, and only those are judged: across a cluster's nodes nobody can tell.
--
-- The field "l:" of an instance: "1" when it listens, else the moment from which it is suspected.

local LOOK, SUSPICION, MOST = 200000, 700000, 64 -- microseconds, microseconds, instances

if LISTENS and now - looked > LOOK and now >= calm and (waiting > 0 or used >= limit) then
  looked = now
  local names, fields, channels = call('ZRANGE', INSTANCES, 0, MOST - 1), {}, {} -- the longest silence first
  for i, name in ipairs(names) do
    fields[i], channels[i] = 'l:' .. name, 'fq:' .. name
  end
  local beliefs, listeners = call('HMGET', HASH, unpack(fields)), redis.pcall('PUBSUB', 'NUMSUB', unpack(channels))
  for i, name in ipairs(names) do
    local belief, is_there = beliefs[i], (listeners[2 * i] or 1) > 0
    if not belief or name == ME then -- knows nothing of it
    elseif is_there then
      if belief ~= '1' then call('HSET', HASH, fields[i], '1') end
    elseif belief == '1' then
      call('HSET', HASH, fields[i], format('%d', now))
    elseif now - tonumber(belief) > SUSPICION then
      call('ZADD', INSTANCES, 0, name) -- its time has passed
      due = 0
    end
  end
end
