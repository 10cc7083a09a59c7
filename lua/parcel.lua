-- parcel: several calls of one instance, carried out one after the other as if each had come by itself. What every
-- script begins and ends with, half of the cost of a call, is there once. Only for a caller who is known, by the same
-- connection and epoch, and as long as no key was lost; any other is told to come with his calls one by one, and nothing
-- was done.
-- ARGV  4 a letter for each call, of one ticket each; no ticket is named twice, since what is looked up first has to be
--       true to the end
--         a  acquire, that may wait   b  acquire, that may not   x y  the same with cost, order and label
--         r  release                  c  cancel
--       5.. for each the ticket, then for x and y: cost, order, label; for r: fence
-- Answer: those of the calls, with ";" between them | the verdict apart

--@include load
local frees, strict, joins, thorough = string.find(ARGV[4], '^[rc]'), false, false, false
local is_known = same
if not same and exists and record then
  -- It knows another configuration than before, or was suspected: what enter makes of that, it makes of all its calls.
  local generation, run, known = string.match(HEADER, '^(%d+) (%S*) (%d+)')
  is_known = string.match(record, '^%d+', 25) == generation and tonumber(known) == epoch and call('HGET', HASH, 'run') == run
end
--@include whole
if not is_known or not whole then return { 'apart', epoch, '', version } end
--@include caller

local values = call('HMGET', HASH, unpack(ARGV, 5)) -- of all arguments, which costs less than to pick the tickets
local answers, at = {}, 5
for n = 1, #ARGV[4] do
  local letter, ticket, value, answer = string.sub(ARGV[4], n, n), ARGV[at], values[at - 4], ''
  if letter == 'r' or letter == 'c' then
    if letter == 'r' then
      local its_fence = ARGV[at + 1]
      at = at + 1
      --@include free
    else
      --@include withdraw
    end
    -- What several give back one after the other is given out at once, if dispatch has nothing else to do.
    if not string.find(ARGV[4], '^r', n + 1) or sweeping > 0 or due < now or limit - used > 64 then
      --@include dispatch
    end
  else
    if value then value = call('HGET', HASH, ticket) end -- asked for once more, and dropped meanwhile as one that never fits
    local may_wait, cost, old_order, label = letter == 'a' or letter == 'x', 1, 0, ''
    if letter > 'r' then
      cost, old_order, label = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
      at = at + 3
    end
    --@include ask
  end
  at = at + 1
  answers[n] = answer
end
local answer = table.concat(answers, ';')

--@include finish
--@include reply
