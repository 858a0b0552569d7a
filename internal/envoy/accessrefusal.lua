-- What those are told who have no credentials, for every script that refuses them. Before it stand, written
-- by Go: `challenges`, what they are told to have, and `unauthenticated`, the answer that a policy has for
-- them, where that isn't the default.

-- Calls of gRPC get codes, which Envoy makes of the statuses 401 and 403.
local function isGRPC(headers)
  return string.find(headers:get("content-type") or "", "^application/grpc") ~= nil
end

-- The challenges, with what is wrong where there is a token that isn't good (RFC 6750, section 3.1). Token is what
-- Envoy has found of the request's tokens; nil for nothing.
local function challengesOf(token)
  for found in pairs(token or {}) do
    if string.sub(found, 1, 4) == "not " then
      local out = {}
      for i, challenge in ipairs(challenges) do out[i] = challenge == "Bearer" and 'Bearer error="invalid_token"' or challenge end
      return out
    end
  end
  return challenges
end

local function refuse(handle, headers, token)
  local answer, body = {[":status"] = "401", ["content-type"] = "text/plain"}, "This needs valid credentials.\n"
  if unauthenticated and not isGRPC(headers) then
    answer, body = {["content-type"] = "text/plain"}, unauthenticated.body
    for name, value in pairs(unauthenticated.headers) do answer[name] = value end
  end
  if #challenges > 0 and answer[":status"] == "401" and not answer["www-authenticate"] then
    answer["www-authenticate"] = challengesOf(token)
  end
  return handle:respond(answer, body)
end
