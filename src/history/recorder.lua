-- Around a script, in processes that record a history: what it was asked, what it answered and what it did goes to the
-- end of a stream, in the same step. So the stream's order is the server's.
-- Row: script, key, wall (TIME as the script read it), then any number of
--   a  an argument   r  a field of the answer   w  a write: "ZADD place score member", "ZREM place member" (of those that
--   were there; who takes out several at once has just seen them), "UNLINK", "PUBLISH channel text"; a place is that of the key in KEYS

local real, wall, writes = redis, 0, {}

local function text(value)
  return type(value) == 'number' and string.format('%d', value) or tostring(value)
end

local function watch(run)
  return function(...)
    local verb, key, first = ...
    local reply = run(...)
    if verb == 'TIME' then
      wall = reply[1] * 1000000 + reply[2]
    elseif verb == 'PUBLISH' then
      writes[#writes + 1] = 'PUBLISH ' .. key .. ' ' .. first
    elseif verb == 'UNLINK' then
      writes[#writes + 1] = 'UNLINK'
    elseif verb == 'ZADD' or verb == 'ZREM' and reply > 0 then
      local words, step = { select(3, ...) }, verb == 'ZADD' and 2 or 1
      for place = 1, #KEYS do
        for at = 1, KEYS[place] == key and #words or 0, step do
          local rest = step == 2 and text(words[at]) .. ' ' .. words[at + 1] or words[at]
          writes[#writes + 1] = verb .. ' ' .. place .. ' ' .. rest
        end
      end
    end
    return reply
  end
end

local redis = { call = watch(real.call), pcall = watch(real.pcall), error_reply = real.error_reply }

local function body()
--@body
end

local answer = body()
local row = { 'XADD', 'history', '*', 'script', '@name', 'key', KEYS[1], 'wall', text(wall) }
local function add(kind, list)
  for _, value in ipairs(list) do
    row[#row + 1] = kind
    row[#row + 1] = text(value)
  end
end
add('a', ARGV)
add('r', type(answer) == 'string' and { answer } or answer.err and { answer.err } or answer)
add('w', writes)
real.call(unpack(row))
return answer
