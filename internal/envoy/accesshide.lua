-- Takes a credential away from a request, with all else that is in its place. What is beside it stays as it is.
local function hide(headers, from)
  if from.header then return headers:remove(from.header) end
  if from.cookie then
    local name = from.cookie
    return takeCookies(headers, function(cookie)
      return string.sub(cookie, 1, #name) == name and string.find(cookie, "^%s*=", #name + 1)
    end)
  end
  local path, query = string.match(headers:get(":path"), "^([^?]*)%?(.*)$")
  local left = {}
  for pair in string.gmatch(query, "[^&]+") do
    local name = string.gsub(string.match(pair, "^[^=]*"), "%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
    if name ~= from.query then left[#left + 1] = pair end
  end
  headers:replace(":path", #left > 0 and path .. "?" .. table.concat(left, "&") or path)
end
