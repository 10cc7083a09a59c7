-- acquire: a place in line, and a permit as soon as it is its turn. Doing it again tells what has become of the ticket.
-- ARGV  3 "1" behind the first digit when it may wait
--       4 ticket; then, when there is more to say than cost 1 and nothing else:  5 cost  6 its order from before (0: new)
--       7 label
-- Answer: see ask

--@include load
local frees, strict, joins, thorough = false, true, true, false
--@include enter

local ticket, may_wait, cost, old_order, label = ARGV[4], string.sub(ARGV[3], 2, 2) == '1', 1, 0, ''
if ARGV[5] then cost, old_order, label = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] end
local answer
--@include ask
--@include finish
--@include reply
