-- status: how the limiter stands. Brings the limiter up to date first, so that the dead are not shown.
-- Answer: ok, configuration, used, holders, waiting, instances, granted, milliseconds of grace left, typical hold in
--       microseconds, estimate for a newcomer in milliseconds (-1: unknown), cost that came back over the limit so far

--@include load
local frees, strict, joins, thorough = true, false, false, true
--@include enter

call('HDEL', HASH, '-')
--@include dispatch
--@include finish
--@include config
local instances = call('ZCARD', INSTANCES) - 1
local estimate = -1
if used < limit and waiting <= 0 then
  estimate = 0
elseif hold > 0 and limit > 0 then
  estimate = floor((waiting + 1) * hold / limit / 1000)
end
return { 'ok', epoch, mine, version, describe(), used, max(0, holding), max(0, waiting), max(0, instances), granted,
  max(0, floor((grace - now) / 1000)), hold, estimate, call('HGET', HASH, 'overshoot') }
