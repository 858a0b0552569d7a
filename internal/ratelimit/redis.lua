-- Judges and charges the hits of one request: KEYS are the counts, ARGV has for each hits,
-- limit, window in ms and mode (see Mode). Answers whether the request is refused, then for
-- each whether it is over, its count, and the ms until its window ends.
local enforced, charged, highest = 0, 2, 4294967295
local counts, hits, refused = {}, {}, 0

for i, key in ipairs(KEYS) do
  local n, limit = tonumber(ARGV[4 * i - 3]), tonumber(ARGV[4 * i - 2])
  local window, mode = tonumber(ARGV[4 * i - 1]), tonumber(ARGV[4 * i])
  local c = counts[key]
  if not c then
    c = {held = tonumber(redis.call('GET', key)), left = window}
    c.n, c.owed = c.held or 0, 0
    if c.held then
      local left = redis.call('PTTL', key)
      if left >= 0 and left <= window then
        c.left = left
      else
        redis.call('PEXPIRE', key, window) -- the limit's window was made shorter
      end
    end
    counts[key] = c
  end
  local over = 0
  if mode ~= charged and (c.n + n > limit or (n == 0 and c.n >= limit)) then
    over = 1
    if mode == enforced then refused = 1 end
  else
    c.n = math.min(c.n + n, highest)
    if mode == charged then c.owed = c.owed + n end
  end
  hits[i] = {over, c.n, c}
end

-- A refused request leaves what it has charged in any case.
if refused == 1 then
  for _, c in pairs(counts) do c.n = math.min((c.held or 0) + c.owed, highest) end
end
local answer = {refused}
for i, h in ipairs(hits) do
  answer[3 * i - 1] = h[1]
  answer[3 * i] = refused == 1 and h[3].n or h[2]
  answer[3 * i + 1] = h[3].left
end
for key, c in pairs(counts) do
  if c.held and c.n > c.held then
    redis.call('INCRBY', key, c.n - c.held)
  elseif not c.held and c.n > 0 then
    redis.call('SET', key, c.n, 'PX', c.left)
  end
end
return answer
