-- Takes the cookies away from a request that a function picks by their text.
local function takeCookies(headers, taken)
  local left, some = {}, false
  for i = 0, headers:getNumValues("cookie") - 1 do
    for pair in string.gmatch(headers:getAtIndex("cookie", i) or "", "[^;]+") do
      local cookie = string.match(pair, "^%s*(.*)$")
      if taken(cookie) then some = true else left[#left + 1] = cookie end
    end
  end
  if not some then return end
  headers:remove("cookie")
  if #left > 0 then headers:add("cookie", table.concat(left, "; ")) end
end

-- Takes the cookies of all sessions away, of whichever policy. Before it stands, written by Go: `sessions`,
-- with one of which the names of those begin.
local function takeSessions(headers)
  takeCookies(headers, function(cookie)
    for _, prefix in ipairs(sessions) do
      if string.sub(cookie, 1, #prefix) == prefix then return true end
    end
    return false
  end)
end
