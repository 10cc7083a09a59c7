-- leave: an instance that closes is forgotten at once, with whatever it still has here.
-- Answer: ok, 1 when there is more to forget

--@include load
local frees, strict, joins, thorough = true, false, false, true
--@include enter

if call('ZREM', INSTANCES, ME) == 1 then
  if sweeping == 0 then sweeping, swept = 1, 0 else again = 1 end
end
call('HDEL', HASH, 'i:' .. ME, 'd:' .. ME)
my_expiry = 0

--@include dispatch
--@include finish
return { 'ok', epoch, mine, version, more }
