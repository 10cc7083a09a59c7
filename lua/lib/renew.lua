-- renew: the caller counts as alive for another lease. Its record is to be written next.

my_expiry = now + lease
due = min(due, my_expiry)
call('ZADD', INSTANCES, format('%d', my_expiry), ME)
