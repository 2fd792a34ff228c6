-- Everything that gateways do to the sessions of the relay. Redis runs one of these at a time, so each is done as a whole or not at all.
--
--   session:<code>           the record, when it ends, its tools, who leads, how many events and results there were
--   session:<code>:events    the last events, each with its number; the channel of the same name carries them as they happen
--   legacy:<code>            the MCP sessions that are bound to the code
--   mcp:<id>                 the code that an MCP session is bound to
--   queue:<code>             the requests that wait, the oldest first
--   queue:<code>:answered    the last that were answered
--   toolreq:<id>             a request, its session and deadline, and who was sent it
--   toolres:<id>             an answer, for gateways that missed the event
--   res:<code>               results for clients
--   session:metrics:live     when each session ends
--   session:metrics:workers  how long each lead holds
--
-- ARGV: what is to be done, the prefix of all keys, the time in milliseconds since 1970, and what that needs.

local call = redis.call
local prefix, now = ARGV[2], tonumber(ARGV[3])
-- Keys outlive their session by this, so that it is ended by a gateway, which tells of it.
local GRACE = 60000
-- An answer outlives the deadline of its request by this.
local ANSWER_GRACE = 10000
local MAX_EVENTS, MAX_ANSWERED, KEPT_DELIVERED, MAX_SWEPT = 256, 256, 16, 100
local LONGEST = 315360000000

local function session(code) return prefix .. 'session:' .. code end
local function events(code) return prefix .. 'session:' .. code .. ':events' end
local function legacy(code) return prefix .. 'legacy:' .. code end
local function mcp(id) return prefix .. 'mcp:' .. id end
local function queue(code) return prefix .. 'queue:' .. code end
local function answered(code) return prefix .. 'queue:' .. code .. ':answered' end
local function toolreq(id) return prefix .. 'toolreq:' .. id end
local function toolres(id) return prefix .. 'toolres:' .. id end
local function res(code) return prefix .. 'res:' .. code end
local LIVE, WORKERS = prefix .. 'session:metrics:live', prefix .. 'session:metrics:workers'

local function is_live(code)
  local ends = call('HGET', session(code), 'until')
  return ends and now < tonumber(ends)
end

-- Whole numbers, also those that Lua would write as 1e+14.
local function whole(number) return string.format('%.0f', number) end

-- All keys of a session end together.
local function hold(code, ends)
  local ms = whole(math.min(math.max(ends - now, 0) + GRACE, LONGEST))
  for _, key in ipairs({session(code), events(code), legacy(code), queue(code), answered(code), res(code)}) do
    call('PEXPIRE', key, ms)
  end
  for _, id in ipairs(call('SMEMBERS', legacy(code))) do call('PEXPIRE', mcp(id), ms) end
  call('ZADD', LIVE, whole(ends), code)
end

-- A key that may be new ends with its session.
local function like_session(code, key)
  call('PEXPIRE', key, math.max(call('PTTL', session(code)), 1))
end

-- Tells of an event. What is logged may be shorter than what is told now.
local function tell(code, event, told)
  local number = call('HINCRBY', session(code), 'events', 1)
  call('RPUSH', events(code), event)
  call('LTRIM', events(code), -MAX_EVENTS, -1)
  like_session(code, events(code))
  call('PUBLISH', events(code), number .. ':' .. (told or event))
end

local function wipe(code, ended)
  local keys = {session(code), events(code), legacy(code), queue(code), answered(code), res(code)}
  for _, id in ipairs(call('LRANGE', queue(code), 0, -1)) do keys[#keys + 1] = toolreq(id) end
  for _, id in ipairs(call('ZRANGE', answered(code), 0, -1)) do keys[#keys + 1] = toolres(id) end
  for _, id in ipairs(call('SMEMBERS', legacy(code))) do
    if call('GET', mcp(id)) == code then keys[#keys + 1] = mcp(id) end
  end
  local was_there = call('EXISTS', session(code))
  for _, key in ipairs(keys) do call('DEL', key) end
  call('ZREM', LIVE, code)
  call('ZREM', WORKERS, code)
  call('PUBLISH', events(code), '0:' .. ended)
  return was_there
end

local function sweep(ended, lead_changed)
  for _, code in ipairs(call('ZRANGEBYSCORE', LIVE, '-inf', now, 'LIMIT', 0, MAX_SWEPT)) do
    if not is_live(code) then wipe(code, ended) end
  end
  for _, code in ipairs(call('ZRANGEBYSCORE', WORKERS, '-inf', now, 'LIMIT', 0, MAX_SWEPT)) do
    call('ZREM', WORKERS, code)
    -- Its gateway is gone: whoever stands by hears of it.
    if is_live(code) then
      call('HDEL', session(code), 'lead_holder', 'lead_stream', 'lead_until')
      tell(code, lead_changed)
    end
  end
end

-- Requests past their deadline wait no more.
local function drop_overdue(code)
  for _, id in ipairs(call('LRANGE', queue(code), 0, -1)) do
    local deadline = call('HGET', toolreq(id), 'deadline')
    if not deadline or now >= tonumber(deadline) then
      call('LREM', queue(code), 1, id)
      call('DEL', toolreq(id))
    end
  end
end

-- The deadline of a request that waits in this session.
local function waits(code, id)
  local found = call('HMGET', toolreq(id), 'code', 'deadline')
  return found[1] == code and now < tonumber(found[2]) and found[2]
end

local function record(code)
  if not is_live(code) then return false end
  return call('HMGET', session(code), 'record', 'until', 'tokened', 'tools')
end

local act = {}

function act.create(code, id, written, ends, most, ended, lead_changed)
  if call('ZCARD', LIVE) >= tonumber(most) then sweep(ended, lead_changed) end
  if is_live(code) or call('EXISTS', mcp(id)) == 1 then return 'taken' end
  if call('ZCARD', LIVE) >= tonumber(most) then return 'full' end
  wipe(code, ended)
  call('HSET', session(code), 'record', written, 'until', ends, 'mcp_id', id)
  call('SADD', legacy(code), id)
  call('SET', mcp(id), code)
  hold(code, tonumber(ends))
  return 'both'
end

act.by_code = record

function act.by_mcp(id)
  local code = call('GET', mcp(id))
  return code and record(code)
end

function act.bind(id, code)
  local bound = call('GET', mcp(id))
  if not bound or not is_live(bound) or not is_live(code) then return 0 end
  call('SREM', legacy(bound), id)
  call('SADD', legacy(code), id)
  call('SET', mcp(id), code)
  hold(code, tonumber(call('HGET', session(code), 'until')))
  return 1
end

function act.touch(code, ends)
  if not is_live(code) then return 0 end
  if tonumber(ends) > tonumber(call('HGET', session(code), 'until')) then
    call('HSET', session(code), 'until', ends)
    hold(code, tonumber(ends))
  end
  return 1
end

act.remove = wipe

function act.forget_mcp(id, ended)
  local code = call('GET', mcp(id))
  if not code then return end
  call('DEL', mcp(id))
  call('SREM', legacy(code), id)
  local found = call('HMGET', session(code), 'mcp_id', 'lead_stream')
  if found[1] == id and not found[2] and call('SCARD', legacy(code)) == 0 then wipe(code, ended) end
end

function act.set(code, field, value, event)
  if not is_live(code) then return 0 end
  call('HSET', session(code), field, value)
  if event then tell(code, event) end
  return 1
end

function act.push(code, id, request, deadline, most, event)
  if not is_live(code) then return 'none' end
  drop_overdue(code)
  local owner = call('HGET', toolreq(id), 'code')
  -- The same once more: its gateway did not hear that it was queued.
  if owner == code then return 'queued' end
  if owner then return 'taken' end
  if call('LLEN', queue(code)) >= tonumber(most) then return 'full' end
  call('HSET', toolreq(id), 'code', code, 'request', request, 'deadline', deadline)
  call('PEXPIRE', toolreq(id), whole(math.min(math.max(tonumber(deadline) - now, 0) + GRACE, LONGEST)))
  call('RPUSH', queue(code), id)
  like_session(code, queue(code))
  tell(code, event)
  return 'queued'
end

function act.unanswered(code)
  if not is_live(code) then return {} end
  drop_overdue(code)
  local found = {}
  for _, id in ipairs(call('LRANGE', queue(code), 0, -1)) do
    found[#found + 1] = call('HMGET', toolreq(id), 'request', 'sent_to')
  end
  return found
end

function act.mark_sent(code, id, journal)
  if not is_live(code) or not waits(code, id) then return 0 end
  call('HSETNX', toolreq(id), 'sent_to', journal)
  return 1
end

function act.answer(code, id, answer, event, told)
  if not is_live(code) then return 'unknown' end
  local deadline = waits(code, id)
  if not deadline then
    drop_overdue(code)
    return call('ZSCORE', answered(code), id) and 'duplicate' or 'unknown'
  end
  call('LREM', queue(code), 1, id)
  call('DEL', toolreq(id))
  call('SET', toolres(id), answer, 'PX', whole(math.min(tonumber(deadline) - now + ANSWER_GRACE, LONGEST)))
  tell(code, event, told)
  call('ZADD', answered(code), call('HGET', session(code), 'events'), id)
  call('ZREMRANGEBYRANK', answered(code), 0, -MAX_ANSWERED - 1)
  like_session(code, answered(code))
  return 'taken'
end

function act.withdraw(code, id, event)
  if not is_live(code) or call('HGET', toolreq(id), 'code') ~= code then return 0 end
  call('LREM', queue(code), 1, id)
  call('DEL', toolreq(id))
  tell(code, event)
  return 1
end

function act.publish(code, event)
  call('PUBLISH', events(code), '0:' .. event)
end

-- A result stands behind the name of its owner.
function act.push_result(code, owner, data, most, event)
  if not is_live(code) then return 0 end
  call('RPUSH', res(code), owner .. ' ' .. data)
  call('LTRIM', res(code), -math.max(tonumber(most), 1), -1)
  call('HINCRBY', session(code), 'results', 1)
  like_session(code, res(code))
  tell(code, event)
  return 1
end

-- The number of the first result that is kept.
local function first_result(code)
  return tonumber(call('HGET', session(code), 'results') or 0) - call('LLEN', res(code)) + 1
end

-- The results of one owner, each after its number.
function act.results(code, owner, after)
  if not is_live(code) then return {} end
  local seen = tonumber(after or call('HGET', session(code), 'delivered:' .. owner) or 0)
  local first, found = first_result(code), {}
  local skipped = math.max(seen - first + 1, 0)
  for place, entry in ipairs(call('LRANGE', res(code), whole(skipped), -1)) do
    if string.sub(entry, 1, #owner + 1) == owner .. ' ' then
      found[#found + 1] = whole(first + skipped + place - 1)
      found[#found + 1] = string.sub(entry, #owner + 2)
    end
  end
  return found
end

function act.delivered(code, owner, number)
  if not is_live(code) then return end
  local field = 'delivered:' .. owner
  local seen = math.max(tonumber(call('HGET', session(code), field) or 0), tonumber(number))
  call('HSET', session(code), field, whole(seen))
  -- Only what its owner got goes. What others have not read yet holds up what came after it.
  for _ = 1, seen - KEPT_DELIVERED - first_result(code) + 1 do
    local entry = call('LINDEX', res(code), 0)
    if not entry or string.sub(entry, 1, #owner + 1) ~= owner .. ' ' then return end
    call('LPOP', res(code))
  end
end

function act.take_lead(code, holder, stream, ends, event)
  if not is_live(code) then return 0 end
  local lead = call('HMGET', session(code), 'lead_holder', 'lead_stream', 'lead_until')
  local held = lead[3] and now < tonumber(lead[3])
  local same = held and lead[2] == stream
  if held and not same and lead[1] ~= holder then return 0 end
  call('HSET', session(code), 'lead_holder', holder, 'lead_stream', stream, 'lead_until', ends)
  call('ZADD', WORKERS, ends, code)
  if not same then tell(code, event) end
  return 1
end

function act.yield_lead(code, stream, event)
  if not is_live(code) or call('HGET', session(code), 'lead_stream') ~= stream then return end
  call('HDEL', session(code), 'lead_holder', 'lead_stream', 'lead_until')
  call('ZREM', WORKERS, code)
  tell(code, event)
end

function act.has_lead(code)
  local ends = is_live(code) and call('HGET', session(code), 'lead_until')
  return ends and now < tonumber(ends) and 1 or 0
end

function act.sweep(ended, lead_changed)
  sweep(ended, lead_changed)
  return {call('ZCARD', LIVE), call('ZCOUNT', WORKERS, '(' .. whole(now), '+inf')}
end

-- For each session how many events there were; -1 where it is over.
function act.heads(...)
  local found = {}
  for place, code in ipairs({...}) do
    found[place] = is_live(code) and tonumber(call('HGET', session(code), 'events') or 0) or -1
  end
  return found
end

-- The events of a session after this number, with their count so far first; -1 where it is over, -2 where some are lost.
function act.missed(code, after)
  if not is_live(code) then return {-1} end
  local last = tonumber(call('HGET', session(code), 'events') or 0)
  local kept, wanted = call('LLEN', events(code)), last - tonumber(after)
  if wanted < 0 or wanted > kept then return {-2} end
  local found = wanted > 0 and call('LRANGE', events(code), -wanted, -1) or {}
  table.insert(found, 1, last)
  return found
end

function act.answer_of(id) return call('GET', toolres(id)) end

return act[ARGV[1]](unpack(ARGV, 4))
