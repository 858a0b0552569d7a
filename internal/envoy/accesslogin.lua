-- Passes a request on that has other credentials than a session, or one with a session's ID token, and
-- answers others with 401. Whose session has been renewed without a new ID token logs in anew. No
-- cookie of a session, this policy's or another's, reaches the backend. Before it stand what it shares
-- with the other scripts of a login, `refuse` and `tellClaims`, and `domain`, which cookies say of theirs.

-- Whether somebody looks at a page by a session that has no ID token any more: the browser has given
-- up the cookie, and the issuer has given no other for the refresh token.
local function ended(headers, metadata)
  local method, mode = headers:get(":method"), headers:get("sec-fetch-mode")
  if method ~= "GET" and method ~= "HEAD" or mode and mode ~= "navigate" then return false end
  if headers:get("x-requested-with") or headers:get(programHeader) then return false end
  local access = metadata:get("gatehouse.access")
  return access and access["renews"]
end

-- Leads to where the request was meant for, without what renews the session: that leads to log in.
local function again(handle, headers)
  local gone = "=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax" .. domain
  handle:respond({
    [":status"] = "302", ["cache-control"] = "no-store",
    ["location"] = headers:get("x-forwarded-proto") .. "://" .. headers:get(":authority") .. headers:get(":path"),
    ["set-cookie"] = {cookies .. "mac" .. gone, cookies .. "refresh" .. gone},
  }, "")
end

function envoy_on_request(handle)
  local headers, metadata = handle:headers(), handle:streamInfo():dynamicMetadata()
  local renewed = ended(headers, metadata)
  headers:remove(passedHeader)
  headers:remove(programHeader)
  takeSessions(headers)
  local access, token = metadata:get("gatehouse.access"), metadata:get("envoy.filters.http.jwt_authn")
  if access and access["passed"] then return end
  if token and token["jwt"] then
    tellClaims(headers, token)
    metadata:set("gatehouse.access", "passed", true)
    return
  end
  if renewed then return again(handle, headers) end
  return refuse(handle, headers)
end
