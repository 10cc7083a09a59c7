-- sync: the heartbeat and the poll of an instance. Its cost does not depend on what the instance holds or waits for:
-- grants follow the order, so when the first of its waiting tickets is still queued, so are all the others.
-- ARGV  4 version of the configuration it knows  5 "1" to publish a probe to its own channel, from where nothing was
--       heard for a while  6.. its first waiting tickets in order
-- Answer: ok, configuration ("" when known), revokes, milliseconds to the next expiry (-1: none), 1 when there is
--       more to do, then for each ticket up to the first queued one "q" | "h,fence,order" | "n" (not there)

--@include load
local frees, strict, joins, thorough = true, true, true, true
--@include enter

call('HDEL', HASH, '-')
-- Who does not know yet that the lease is shorter now goes on believing in the old one, should the answer get lost.
if tonumber(ARGV[4]) == version then my_expiry = 0 end
--@include renew
--@include record
if ARGV[5] == '1' and not raised then
  --@include remind
end
--@include dispatch
--@include finish

local earliest = tonumber(call('ZRANGE', INSTANCES, 0, 0, 'WITHSCORES')[2])
local next_event = now < grace and grace or max(earliest, calm)
local in_ms = next_event == math.huge and -1 or max(0, floor((next_event - now) / 1000) + 1)
if waiting > 0 and earliest < my_expiry and string.find(HEADER, LISTENING) then
  -- Who stands in front looks after the others more often.
  for _, first in ipairs(call('ZRANGE', QUEUE, 0, 2)) do
    if string.match(first, '^(.-):') == ME then in_ms = in_ms < 0 and LOOK / 1000 or min(in_ms, LOOK / 1000) end
  end
end
local config = ''
if tonumber(ARGV[4]) ~= version then
  --@include config
  config = describe()
end
local reply = { 'ok', epoch, mine, version, config, revokes, in_ms, more }
for i = 6, #ARGV do
  local place, its_fence = string.match(call('HGET', HASH, ARGV[i]) or '', '^(%x+)=?(%d*)')
  if not place then
    reply[#reply + 1] = 'n'
  elseif its_fence ~= '' then
    reply[#reply + 1] = format('h,%s,%d', its_fence, tonumber(place, 16))
  else
    reply[#reply + 1] = 'q'
    break
  end
end
if ARGV[5] == '1' then redis.pcall('PUBLISH', 'fq:' .. ME, '0 p') end
return reply
