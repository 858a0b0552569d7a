-- Tells the backend what the token says that counts, by the headers of the rule that it is accepted by. Of
-- what that rule says itself nothing else gets into these headers. Before it stands, written by Go: `issuers`,
-- the rules in the order in which Envoy looks for tokens, with the mark that it leaves of each that has one;
-- and `hide`, for the place of a token that goes no further.
local function tellClaims(headers, token)
  local rule
  for _, issuer in ipairs(issuers) do
    if token[issuer.mark] then rule = issuer end -- the last one: Envoy stops at the first one that is good
  end
  if rule and rule.from then hide(headers, rule.from) end
  for _, told in ipairs(rule and rule.headers or {}) do
    local value = token["jwt"]
    for _, name in ipairs(told.claim) do
      if type(value) == "table" then value = value[name] else value = nil end
    end
    if type(value) == "number" then value = string.format(value % 1 == 0 and "%.0f" or "%.14g", value) end
    if type(value) == "boolean" then value = tostring(value) end
    -- A line break would end the header.
    if type(value) == "string" and value ~= "" and not string.find(value, "%c") then headers:replace(told.header, value) end
  end
end
