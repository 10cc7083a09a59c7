-- caller: who is calling, and is it to bring back what it holds? See enter.

local KNOWN, known_version, anew, declares, raised, awaited = epoch, version, not whole, false, false, false
if anew or not same then
  local generation, run, known, its_version, configuration = string.match(HEADER, '^(%d+) (%S*) (%d+) %d (%d+) (.*)$')
  local my_generation = tonumber(record and string.match(record, '^%d+', 25) or 0)
  if my_generation > tonumber(generation) then return { 'refused', epoch, '', version } end
  if joins and not record then
    -- Nobody here knows its generation (any more). If an instance was forgotten since the command was sent (or all were,
    -- with the limiter), it may have been this one, and the command one that was stuck in the network, of which nobody
    -- knows any more. Whoever is alive asks again, with a new number.
    local age = now - skew - tonumber(string.sub(ARGV[3], 3))
    if age > 100000 and age > (exists and now - tonumber(call('HGET', HASH, 'forgot') or 0) or 0) then
      return { 'refused', epoch, '', version }
    end
  end
  if not exists and string.sub(configuration, 2, 2) == '|' then return { 'none', epoch, '', version } end
  KNOWN, known_version, declares = tonumber(known), tonumber(its_version), string.sub(configuration, 1, 1) == '1'
  raised = record and my_generation < tonumber(generation) -- it has connected anew
  awaited = not record and call('ZSCORE', INSTANCES, ME) -- known from before a fail-over only: it has not reported since
  -- A caller that knows a later epoch tells that an older state has come back: a replica that was master before, and is
  -- again.
  anew = anew or call('HGET', HASH, 'run') ~= run or KNOWN > epoch
  if frees and (anew or declares) then call('HDEL', HASH, '-') end
  if anew then
    -- A new epoch: what is left of the old one is thrown away, and the instances bring back what they hold and wait
    -- for. Nobody is admitted for two heartbeat intervals, unless nobody can remember anything. If all of the old state
    -- is there, it is another server's, or an older one: then clients have to find this server first, which takes its
    -- time however short the lease is; and whoever is known to have had a ticket is waited for, for as long as it may
    -- believe in that.
    local expected = {}
    if whole then
      --@include expect
    end
    local overshoot = call('HGET', HASH, 'overshoot') or '0'
    --@include config
    call('HSET', HASH, 'run', run)
    call('UNLINK', HASH, QUEUE, HELD, INSTANCES)
    call('HSET', HASH, 'run', run, 'forgot', format('%d', now), 'overshoot', overshoot)
    call('ZADD', QUEUE, '+inf', '.')
    call('ZADD', HELD, '+inf', '.')
    call('ZADD', INSTANCES, '+inf', '.')
    adopt(true)
    local remembered = exists or KNOWN ~= 0
    -- The time, so that it is later than any that somebody knows, also if the caller had missed one. Where the wall clock
    -- was set back it is one that nobody remembers, most likely; it never runs ahead of the clock otherwise.
    epoch = max(epoch + 1, now)
    if KNOWN >= epoch then epoch = KNOWN + 1 + now % 1000000 end
    local span = whole and max(lease, 6000000) or lease
    grace = remembered and now + floor(span * 2 / 3) or 0
    used, calm, excused, gaps, due, sweeping, again, kept, torn = 0, 0, 0, 0, math.huge, 0, 0, 0, 0
    waiting, holding, my_expiry, value, same, raised, awaited, cold = 0, 0, nil, nil, false, false, false, nil
    if #expected > 0 then
      call('HSET', HASH, 'awaited', format('%d %d', #expected, grace))
      grace = now + span
      due = grace
      for _, name in ipairs(expected) do
        call('ZADD', INSTANCES, format('%d', grace), name)
        awaited = awaited or name == ME
      end
    end
  elseif declares then
    --@include config
    adopt(false)
  end
end
if not anew then
  if KNOWN ~= epoch and KNOWN ~= 0 and grace == 0 then
    grace, cold = now + floor(lease * 2 / 3), nil -- opened by one who remembered nothing, and here is one who does
  end
  if now - before > lease / 2 and waiting + holding > 0 then
    -- A quiet gap: nobody could report. Whose lease had ended before it began has no excuse. A gap that cuts short the
    -- time to report after another counts with it as one, but only so often: rare visitors leave gap after gap.
    if before < calm and gaps < 2 then gaps = gaps + 1 else gaps, excused = 0, before end
    calm, cold = now + floor(lease * 5 / 12), nil
  end
end

-- For dispatch: work is left for the next call; what the caller is to be told; what others are.
--   "g,number,fence,order" granted   "x,number,limit" impossible   "r,number" permit revoked   "v,number" place revoked
local more, mine, messages = 0, '', nil
-- What is new of tickets is written in one command with the state: names and texts in turns (see write). And of the
-- ticket that is being asked for, which may be granted before.
local writes, fresh, fresh_text = nil, nil, nil

if strict and not BARE and (KNOWN ~= epoch or not my_expiry) then
  call('HDEL', HASH, '-') -- a full Redis, too, has to say so, or nobody would bring back what it holds
  --@include finish
  return { 'resync', epoch, '', version }
end
if awaited and (joins or BARE) then
  -- It has reported. When all have that were waited for, there is no more reason to.
  if frees then call('HDEL', HASH, '-') end
  local left, first = string.match(call('HGET', HASH, 'awaited') or '1 0', '(%d+) (%d+)')
  if not joins then call('ZREM', INSTANCES, ME) end
  if left ~= '1' then
    call('HSET', HASH, 'awaited', format('%d %d', left - 1, first))
  else
    call('HDEL', HASH, 'awaited')
    grace, cold = min(grace, tonumber(first)), nil
  end
end
if my_expiry or joins then
  local stale = not my_expiry or my_expiry < now + lease * 0.75 -- every verb leaves its caller three quarters of a lease
  if not same or stale then
    if frees then call('HDEL', HASH, '-') end
    if not my_expiry then
      call('HSET', HASH, 'd:' .. ME, string.match(HEADER, '^%d+ %S* %d+ %d %d+ .[^|]*|%d*|[^|]*|%d*|(.*)$') or '')
      -- Until its first sync it may not know how short the lease is.
      local believed = string.match(HEADER, '^%d+ %S* %d+ %d %d+ .%d+ %d+ %d+ (%d+)')
      if believed ~= format('%d', lease / 1000) then my_expiry = now + 2000000 end
    end
    if stale then
      --@include renew
    end
    told = KNOWN == epoch and known_version == version and not declares and version or 0
    --@include record
  end
end
if raised then
  --@include remind
end
