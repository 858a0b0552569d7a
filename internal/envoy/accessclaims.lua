-- Before this stands, written by Go: `issuers`, the rules in the order in which Envoy looks for tokens, each place of
-- a rule by itself, with the mark that Envoy leaves of each that has a good one; and `hide`, for the place of a token
-- that goes no further.

-- The rule, with the place, of the token that counts.
local function counts(token)
  local rule
  for _, issuer in ipairs(issuers) do
    if token[issuer.mark] then rule = issuer end -- the last one: Envoy stops at the first one that is good
  end
  return rule
end

-- Whether the place of the token that seems to count has a bad one as well, in another header of the name. A
-- backend could take that for the one that has been verified.
local function isMixed(token)
  local rule = counts(token)
  return rule ~= nil and token["not " .. rule.mark] ~= nil
end

-- Tells the backend what the token says that counts, by the headers of the rule that it is accepted by. Of
-- what that rule says itself nothing else gets into these headers.
local function tellClaims(headers, token)
  local rule = counts(token)
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
