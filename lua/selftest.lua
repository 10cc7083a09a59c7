-- selftest: runs every command that the other scripts use once, on scratch keys, and names what is denied.
-- KEYS as ever, of a limiter that nobody else uses; they are deleted at the end.
-- ARGV  1 instance
-- Answer: list of errors, empty when all is well

local errors = {}
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    local command = select(1, ...)
    errors[#errors + 1] = (command == 'PUBSUB' and 'PUBSUB|NUMSUB' or command) .. ': ' .. reply.err
  end
end
local hash, sorted = KEYS[1], KEYS[2]
try('TIME')
try('HSET', hash, 'f', '1', '.', '')
try('HMGET', hash, 'f')
try('HGET', hash, 'f')
try('HEXISTS', hash, 'f')
try('HDEL', hash, 'f')
try('ZADD', sorted, 1, 'm', '+inf', '.')
try('ZCARD', sorted)
try('ZSCORE', sorted, 'm')
try('ZRANK', sorted, 'm')
try('ZRANGE', sorted, 0, 0, 'WITHSCORES')
try('ZRANGEBYSCORE', sorted, '-inf', '+inf', 'LIMIT', 0, 1)
try('ZREM', sorted, 'm')
try('PEXPIRE', hash, 1000) -- should UNLINK be denied
try('PEXPIRE', sorted, 1000)
try('PUBLISH', 'fq:' .. ARGV[1], '0 p')
try('PUBSUB', 'NUMSUB', 'fq:' .. ARGV[1])
try('UNLINK', hash, sorted)
return errors
