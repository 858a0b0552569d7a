-- Reads in answers what these have cost, while they pass: nothing waits for it, however long an answer
-- is. Before it stand, written by Go: `namespace`, under which the cost is written down; `most`, which
-- is the highest; and `paths`, each the names on the way to a number, with the `key` of that.

local find, sub, lower, match = string.find, string.sub, string.lower, string.match

-- Names and numbers that are longer are none that a path leads to.
local longest, deepest = 256, 8

-- Returns what takes a document in pieces and calls with the path and the text of numbers on paths.
local function reader(found)
  local depth, names = 0, {} -- of the objects and arrays around, the name in each that is read now
  local inside, skip = false, 0 -- in a string; bytes of it that an escape has
  local text, value = "", nil -- of the string; of what comes behind a name

  local function add(old, s, from, to)
    return #old < longest and old .. sub(s, from, math.min(to, from + longest)) or old
  end
  local function ended()
    if value and names[depth] then
      for _, path in ipairs(paths) do
        local same = #path == depth
        for i = 1, same and depth or 0 do same = same and names[i] == path[i] end
        if same then found(path, value) end
      end
    end
    value, names[depth] = nil, nil
  end

  return function(s)
    local at = 1 + skip
    skip = math.max(0, skip - #s)
    while at <= #s do
      local next = find(s, inside and '["\\]' or '["{}%[%]:,]', at)
      local to = (next or #s + 1) - 1
      if inside then
        text = add(text, s, at, to)
      elseif names[depth] then
        value = add(value or "", s, at, to)
      end
      if not next then return end
      at = next + 1
      local c = sub(s, next, next)
      if c == "\\" then
        if #text < longest then text = text .. c end
        at = at + 1
        skip = math.max(0, at - 1 - #s)
      elseif c == '"' then
        if inside and names[depth] then value = text end
        inside = not inside
        if inside then text = "" end
      elseif c == ":" then
        names[depth] = depth <= deepest and text or nil
      else
        if c == "{" or c == "[" then
          depth, value = depth + 1, nil
        else
          ended()
          if c ~= "," then
            depth = math.max(0, depth - 1)
            names[depth] = nil
          end
        end
      end
    end
  end
end

-- What says no number costs by its length: a token for four bytes of the request and of the answer. In
-- streams each event, or line, is a token, with what it may have of names and quotes.
local bytes_of_token, bytes_of_event = 4, 256
local lines = {
  ["application/x-ndjson"] = true, ["application/ndjson"] = true, ["application/jsonl"] = true,
  ["application/x-jsonlines"] = true, ["application/json-lines"] = true, ["application/json-seq"] = true,
}

local function count(s, what)
  local n, at = 0, find(s, what, 1, true)
  while at do
    n, at = n + 1, find(s, what, at + 1, true)
  end
  return n
end

-- Envoy forgets objects whenever the script waits.
local function metadata(handle) return handle:streamInfo():dynamicMetadata() end
local function written(handle) return metadata(handle):get(namespace) or {} end
local function charge(handle, path, n)
  metadata(handle):set(namespace, path.key, n)
end
local function whole(n) return math.min(math.floor(n), most) end
-- A guess is told from what an answer says by its fraction, which Envoy doesn't charge.
local function guess(n) return whole(n) + 0.5 end

function envoy_on_request(handle)
  local bytes = 0
  for chunk in handle:bodyChunks() do
    -- An answer that has begun says what the request costs.
    if written(handle)[".answered"] then return end
    bytes = bytes + chunk:length()
    for _, path in ipairs(paths) do charge(handle, path, guess(bytes / bytes_of_token)) end
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local type = lower(match(headers:get("content-type") or "", "^%s*([^;%s]*)"))
  local packed = lower(headers:get("content-encoding") or "identity") ~= "identity"
  local document = not packed and (type == "application/json" or match(type, "^application/.+%+json$") or lines[type])
  local event = not packed and (type == "text/event-stream" and "\ndata:" or lines[type] and "\n")
  -- Errors cost nothing unless they say so.
  local free = (tonumber(headers:get(":status")) or 0) >= 400

  local asked, guessed, said = written(handle), {}, {}
  metadata(handle):set(namespace, ".answered", true) -- which no path is
  for _, path in ipairs(paths) do
    asked[path.key] = not free and asked[path.key] or 0
    guessed[path.key] = guess(asked[path.key])
    charge(handle, path, guessed[path.key])
  end
  local read = document and reader(function(path, text)
    local n = tonumber(match(text, "^%s*(-?%d[%d.eE+-]*)%s*$") or "")
    if n and n >= 0 then
      said[path.key] = true
      charge(handle, path, whole(n))
    end
  end)

  local bytes, events, rest = 0, 0, "\n" -- of the chunk before; the first event has no line before it
  if event == "\n" then rest = "" end
  for chunk in handle:bodyChunks() do
    bytes = bytes + chunk:length()
    if read or event then
      local s = chunk:getBytes(0, chunk:length())
      if read then read(s) end
      if event then
        s = rest .. s
        events = events + count(s, event)
        rest = #event > 1 and sub(s, 1 - #event) or ""
      end
    end
    -- Packed text has about a token in each of a few bytes.
    local cost = packed and bytes or math.max(events, (bytes - events * bytes_of_event) / bytes_of_token)
    local found = written(handle)
    for _, path in ipairs(paths) do
      local key = path.key
      -- What the reader of events has found is there already.
      if found[key] ~= guessed[key] and (found[key] or -1) >= 0 then said[key] = true end
      if not said[key] and not free then
        guessed[key] = guess(asked[key] + cost)
        charge(handle, path, guessed[key])
      end
    end
  end
end
