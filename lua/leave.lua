-- leave: an instance that closes is forgotten at once, with whatever it still has here.
-- Answer: ok

local stopped = enter(true, false, false)
if stopped then return stopped end
if call('ZREM', INSTANCES, ME) == 1 then
  start_sweep()
end
call('HDEL', HASH, 'i:' .. ME, 'd:' .. ME)
dispatch()
return answer('ok', finish(), more and 1 or 0)
