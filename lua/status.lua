-- status: how the limiter stands. Writes nothing.
-- Answer: ok, configuration, used, holders, waiting, instances, granted, milliseconds of grace left, typical hold in
--       microseconds, estimate for a newcomer in milliseconds (-1: unknown)

load_state()
if not exists then return answer('none') end
local instances = call('ZCARD', INSTANCES) - 1
return answer('ok', '', describe_config(), s.used, max(0, holding), max(0, waiting), max(0, instances), s.granted,
  max(0, floor((s.grace - s.now) / 1000)), int(s.hold), s.used < s.limit and waiting <= 0 and 0 or estimate(waiting + 1))
