-- ticket: the answer about `ticket` after dispatch: what has become of it.

local value = call('HGET', TICKETS, ticket)
if not value then return { 'gone', epoch, mine, version } end
local place = tonumber(string.match(value, '^%x+'), 16)
local its_fence = call('ZSCORE', HELD, ticket)
if its_fence then return { 'granted', epoch, mine, version, tonumber(its_fence), place } end
local position = call('ZRANK', QUEUE, ticket) + 1
-- Milliseconds until it is likely served: as many hold times as there are rounds of the limit before it (Little's
-- law, with the mean of hold time times cost); -1 when nothing is known yet.
local estimate = hold > 0 and limit > 0 and floor(position * hold / limit / 1000) or -1
return { 'queued', epoch, mine, version, place, position, estimate }
