-- enter: what every mutating verb begins with. Is the limiter what it was, and who is calling? The verb says before:
--   frees   it has to work on a full Redis. That lets a script write on when its first write frees memory (even if it
--           finds nothing: HDEL of "-"), and refuses the whole script when it may need some; scripts do not roll back.
--           What enter writes begins in the right way; the verb's own first write has to, too.
--   strict  it means nothing before the caller's tickets are known
--   joins   a caller that is not known is counted in

--@include load

local awaited = my_expiry and not raw[3] -- known from before a fail-over only: it has not reported since
if awaited then my_expiry = nil end
if my_generation > GENERATION then return { 'refused', epoch, '', version } end
local declares = string.sub(ARGV[6], 1, 1) == '1'
if joins and not my_expiry then
  -- Nobody here knows its generation (any more). If an instance was forgotten since the command was sent (or all were, with
  -- the limiter), it may have been this one, and the command one that was stuck in the network, of which nobody knows any
  -- more. Whoever is alive asks again, with a new number.
  local age = now - skew - tonumber(string.sub(ARGV[5], 3))
  if age > 100000 and age > (exists and now - tonumber(call('HGET', HASH, 'forgot') or 0) or 0) then
    return { 'refused', epoch, '', version }
  end
end
if not exists and string.sub(ARGV[6], 2, 2) == '|' then return { 'none', epoch, '', version } end
-- A caller that knows a later epoch tells that an older state has come back: a replica that was master before, and is again.
local anew = not exists or run ~= RUN or not whole or KNOWN > epoch
local stale = not my_expiry or my_expiry < now + lease * 0.75 -- every verb leaves its caller three quarters of a lease
local misjudged = believed ~= (LISTENS and '1') -- it has begun to listen, or ended, or was taken for dead
if frees and (anew or declares or stale or misjudged or my_generation < GENERATION) then call('HDEL', HASH, '-') end

if anew then
  -- A new epoch: what is left of the old one is thrown away, and the instances bring back what they hold and wait
  -- for. Nobody is admitted for two heartbeat intervals, unless nobody can remember anything. If all of the old state
  -- is there, it is another server's, or an older one: then clients have to find this server first, which takes its time
  -- however short the lease is; and whoever is known to have had a ticket is waited for, for as long as it may
  -- believe in that.
  local expected = {}
  local moved = exists and whole
  if moved then
    --@include expect
  end
  local overshoot = call('HGET', HASH, 'overshoot') or '0'
  --@include config
  call('HSET', HASH, 'run', RUN)
  call('UNLINK', HASH, QUEUE, HELD, TICKETS, INSTANCES)
  call('HSET', HASH, 'run', RUN, 'forgot', format('%d', now), 'overshoot', overshoot)
  call('ZADD', QUEUE, '+inf', '.')
  call('ZADD', HELD, '+inf', '.')
  call('ZADD', INSTANCES, '+inf', '.')
  call('HSET', TICKETS, '.', '')
  adopt(true)
  local remembered = exists or KNOWN ~= 0
  -- The time, so that it is later than any that somebody knows, also if the caller had missed one. Where the wall clock was
  -- set back it is one that nobody remembers, most likely; it never runs ahead of the clock otherwise.
  epoch = max(epoch + 1, now)
  if KNOWN >= epoch then epoch = KNOWN + 1 + now % 1000000 end
  local span = moved and max(lease, 6000000) or lease
  grace = remembered and now + floor(span * 2 / 3) or 0
  used, calm, excused, gaps, due, sweeping, again, kept = 0, 0, 0, 0, math.huge, 0, 0, 0
  waiting, holding, my_expiry, my_generation, awaited = 0, 0, nil, 0, false
  if #expected > 0 then
    call('HSET', HASH, 'awaited', format('%d %d', #expected, grace))
    grace = now + span
    due = grace
    for _, name in ipairs(expected) do
      call('ZADD', INSTANCES, format('%d', grace), name)
      awaited = awaited or name == ME
    end
  end
else
  if declares then
    --@include config
    adopt(false)
  end
  if KNOWN ~= epoch and KNOWN ~= 0 and grace == 0 then
    grace = now + floor(lease * 2 / 3) -- opened by one who remembered nothing, and here is one who does
  end
  if now - before > lease / 2 and waiting + holding > 0 then
    -- A quiet gap: nobody could report. Whose lease had ended before it began has no excuse. A gap that cuts short the
    -- time to report after another counts with it as one, but only so often: rare visitors leave gap after gap.
    if before < calm and gaps < 2 then gaps = gaps + 1 else gaps, excused = 0, before end
    calm = now + floor(lease * 5 / 12)
  end
end

local raised = my_expiry and my_generation < GENERATION -- it has connected anew
local resync = strict and not BARE and (KNOWN ~= epoch or not my_expiry)
if not resync then
  if awaited and (joins or BARE) then
    -- It has reported. When all have that were waited for, there is no more reason to.
    local left, first = string.match(call('HGET', HASH, 'awaited') or '1 0', '(%d+) (%d+)')
    if not joins then call('ZREM', INSTANCES, ME) end
    if left ~= '1' then
      call('HSET', HASH, 'awaited', format('%d %d', left - 1, first))
    else
      call('HDEL', HASH, 'awaited')
      grace = min(grace, tonumber(first))
    end
  end
  if my_expiry then
    if raised then call('HSET', HASH, 'i:' .. ME, GENERATION) end
    if misjudged and LISTENS then call('HSET', HASH, 'l:' .. ME, '1') end
    if misjudged and not LISTENS then call('HDEL', HASH, 'l:' .. ME) end
    if stale then
      my_expiry = now + lease
      due = min(due, my_expiry)
      call('ZADD', INSTANCES, format('%d', my_expiry), ME)
    end
  elseif joins then
    my_expiry = now + lease
    -- Until its first sync it may not know how short the lease is.
    if string.match(ARGV[6], '^.%d+ %d+ %d+ (%d+)') ~= format('%d', lease / 1000) then my_expiry = max(my_expiry, now + 2000000) end
    due = min(due, my_expiry)
    call('ZADD', INSTANCES, my_expiry, ME)
    call('HSET', HASH, 'i:' .. ME, GENERATION, 'd:' .. ME, string.match(ARGV[6], '^.[^|]*|%d*|[^|]*|%d*|(.*)$') or '')
    if LISTENS then call('HSET', HASH, 'l:' .. ME, '1') end
  end
end

-- For dispatch: work is left for the next call; what the caller is to be told; what others are.
--   "g,number,fence,order" granted   "x,number,limit" impossible   "r,number" permit revoked   "v,number" place revoked
local more, mine, messages = 0, '', nil

if resync then
  --@include finish
  return { 'resync', epoch, '', version }
end
if raised then
  --@include remind
end
