-- sync: the heartbeat and the poll of an instance. Its cost does not depend on what the instance holds or waits for:
-- grants follow the order, so when the first of its waiting tickets is still queued, so are all the others.
-- ARGV  7 version of the configuration it knows  8 "1" to publish a probe to its own channel  9.. its first waiting
--       tickets in order
-- Answer: ok, configuration ("" when known), revokes, milliseconds to the next expiry (-1: none), "1" when there is
--       more to do, then for each ticket up to the first queued one "q" | "h,fence,order" | "n" (not there)

local stopped = enter(true, true, true)
if stopped then return stopped end
renew(true)
dispatch()
local states = {}
for i = 9, #ARGV do
  local state = find_ticket(ARGV[i])
  if not state then
    states[#states + 1] = 'n'
  elseif state[1] == 'granted' then
    states[#states + 1] = 'h,' .. state[2] .. ',' .. state[3]
  else
    states[#states + 1] = 'q'
    break
  end
end
read_earliest()
local next_event = s.now < s.grace and s.grace or max(earliest, s.calm)
local in_ms = next_event == math.huge and -1 or max(0, floor((next_event - s.now) / 1000) + 1)
local notices = finish()
local config = tonumber(ARGV[7]) ~= s.version and describe_config() or ''
if ARGV[8] == '1' then redis.pcall('PUBLISH', 'fq:' .. ME, int(s.epoch) .. ' p') end
return answer('ok', notices, config, s.revokes, in_ms, more and 1 or 0, unpack(states))
