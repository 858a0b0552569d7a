-- Has the filter of OAuth 2.0 know what it has to do with a request. An ID token in clear is none that
-- the filter has given out, since those are encrypted and then have no dot, but it would be taken for one
-- where a session is renewed and the issuer gives no new ID token: that filter checks none of the cookies
-- then but the refresh token, which may be another person's. That there is such a token is noted before
-- the filter takes it. A request that neither reads nor comes from a page of a browser is a program's: a redirect
-- would lose its method and body. Before it stand, written by Go: `cookies`, with which the names of the session's
-- cookies begin, and the names of headers, `passedHeader` and `programHeader`.
local function leadIn(headers, metadata, passed)
  headers:remove(passedHeader)
  headers:remove(programHeader)
  local method = headers:get(":method")
  local reads = method == "GET" or method == "HEAD"
  if headers:get("authorization") or not reads and headers:get("sec-fetch-mode") ~= "navigate" then
    headers:add(programHeader, "1")
  end
  if passed then headers:add(passedHeader, "1") end
  takeCookies(headers, function(cookie)
    if string.find(cookie, cookies .. "refresh", 1, true) then metadata:set("gatehouse.access", "renews", true) end
    return string.find(cookie, cookies .. "id", 1, true) and string.find(cookie, ".", 1, true)
  end)
  return passed
end
