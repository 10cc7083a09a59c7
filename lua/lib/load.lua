-- load: reads what every verb judges by. Included first, by verbs that write (through enter) and by those that only
-- look.
--
-- KEYS  1 hash (state, run, config; for each instance "i:" its record, "d:" its description; for each ticket, by its
--         name, its order in hex, "=fence" while it is held, and " cost label" when there is more to say than cost 1:
--         short, because there may be many; and what is rarely asked for: forgot, when an instance last was; awaited, how
--         many are waited for after a fail-over, and when the grace is over without them; overshoot, the cost that came
--         back over the limit after losses of state)
--       2 queue (ticket -> order)  3 held (ticket -> fence)
--       4 instances (instance -> microsecond until which it counts as alive)
-- ARGV  1 instance
--       2 its header: "generation run epoch listens version configuration": generation of its connection, run id of the
--         server, the epoch it knows (0: none), "1" when it listens to its channel on this server, the version of the
--         configuration that it knows (0: none), its configuration (see config)
--       3 two digits: "1" when it neither holds nor waits for anything here; what the verb says; then the server's time in
--         microseconds when it was sent, as the caller believes
--       4.. arguments of the verb
-- Answer: {verdict, epoch, notices, version of the configuration, ...}. Verdicts that every verb may give:
--       refused  the command comes from an older connection of its instance; nothing was done
--       none     there is no such limiter, and the caller declares none
--       resync   state was lost, or the caller was reaped: it must `restore` first; nothing was done
--       A caller who knows epoch and version is mostly answered in brief: a string, as the verb says, then a blank and
--       the notices if there are any.
--
-- The scripts are straight lines of code, composed of parts: a function would be made anew with each call, and cost
-- more than most commands. What happens rarely stands in blocks of its own.
--
-- Times are microseconds of a clock that never runs backwards: TIME + skew. Each of the keys 2 to 4 has a permanent
-- member ".", so that a key without it has been lost, and an expiry set on the key stays.

local HASH, QUEUE, HELD, INSTANCES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ME, HEADER, BARE = ARGV[1], ARGV[2], string.sub(ARGV[3], 1, 1) == '1'
local LISTENING = '^%d+ %S* %d+ 1' -- a header that says so
local call, max, min, floor, format = redis.call, math.max, math.min, math.floor, string.format

-- An instance's record: three doubles (until when it counts as alive; the version of the configuration that it has been
-- told; since when it is suspected, see look), then the header of its last call that said anything new. A call that
-- says the same once more is `same`: nothing of it has to be judged, for a new epoch leaves no record, and a new version
-- differs.
local raw = call('HMGET', HASH, 'state', 'i:' .. ME, ARGV[4] or '-')
local exists, record, value = raw[1], raw[2], raw[3] -- value: what is known of the ticket, when the verb names it first
if exists and #exists ~= 225 then return redis.error_reply('FQFORMAT written by another version of fairq') end

-- The numbers of a limiter, doubles in one field: reading and writing them one by one would cost more than all the rest.
-- finish writes them. Those in the second half seldom change: they are written as they were read, unless somebody has
-- set `cold` to nil.
--   used      the cost held          waiting, holding  so many tickets are queued and held
--   due       no lease ends before   hold              mean of hold time times cost
--   looked    when somebody last looked for the dead
--   torn      1: something was not where it had to be
--   lease, idle  in microseconds     version           of the configuration
--   grace     nobody is admitted before
--   calm      nobody is reaped before whose lease ended after `excused`; `gaps`: how many silences that excuses
--   sweeping  1: through held, 2: through the queue; `swept`: the last score seen; `again`: start over
--   revokes   how many there were    kept              when the expiry of the keys was last set
local now, order, fence, used, waiting, holding, due, hold, granted, looked, torn,
  epoch, skew, limit, max_queue, lease, idle, paused, version, grace, calm, excused, gaps, sweeping, swept, again, revokes,
  kept = struct.unpack('<dddddddddddddddddddddddddddd', exists or string.rep('\0', 224))
local cold = exists and string.sub(exists, 89)
local my_expiry, told, same = nil, 0, false
if record then
  my_expiry, told = struct.unpack('<dd', record)
  same = told == version and string.sub(record, 25) == HEADER
end

local time = call('TIME')
local before = now
now = time[1] * 1000000 + time[2] + skew
if now < before then -- the wall clock was set back: go on from where it stood
  skew, cold = skew + before - now, nil
  now = before
end
