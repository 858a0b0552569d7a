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

function envoy_on_response(handle)
  local headers = handle:headers()
  local type = lower(match(headers:get("content-type") or "", "^%s*([^;%s]*)"))
  local document = type == "application/json" or match(type, "^application/.+%+json$")
  if not document and type ~= "text/event-stream" then return end
  local function charge(path, n)
    if not n or n < 0 then return end
    handle:streamInfo():dynamicMetadata():set(namespace, path.key, math.min(math.floor(n), most))
  end
  if lower(headers:get("content-encoding") or "identity") ~= "identity" then
    -- It can't be read. Packed text has about a token in each of a few bytes.
    local bytes = 0
    for chunk in handle:bodyChunks() do bytes = bytes + chunk:length() end
    for _, path in ipairs(paths) do charge(path, bytes) end
    return
  end
  if not document then return end
  local read = reader(function(path, text) charge(path, tonumber(match(text, "^%s*(-?%d[%d.eE+-]*)%s*$") or "")) end)
  for chunk in handle:bodyChunks() do read(chunk:getBytes(0, chunk:length())) end
end
