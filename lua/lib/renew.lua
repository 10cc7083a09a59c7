-- renew: the caller counts as alive for another lease, or for what is left of a longer one. Its record is to be written
-- next.

my_expiry = max(my_expiry or 0, now + lease)
due = min(due, my_expiry)
call('ZADD', INSTANCES, format('%d', my_expiry), ME)
