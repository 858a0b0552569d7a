-- Passes a request on that has one of the credentials, whichever, and answers others with 401.
-- Exactly one of them counts: a token before all others, and of those the first one of `rules`.
-- Before it stand `refuse`, `tellClaims` and `hide`, and, written by Go: `required`, whether a request needs credentials;
-- `rules`, the keys and passwords that are credentials, as hashes, and the names of certificates; and `leadIn`,
-- where people log in by the next filters, which those are left to.

local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local rol, ror, rshift, tobit, tohex = bit.rol, bit.ror, bit.rshift, bit.tobit, bit.tohex
local byte, char, sub, find, gsub, lower = string.byte, string.char, string.sub, string.find, string.gsub, string.lower

-- Whoever sends something longer has no credential, and costs no more than that.
local longest = 4096

-- The words of a text as SHA-1 and SHA-256 read it: with a bit behind it, and its length.
local function words(text)
  local bits = #text * 8
  text = text .. "\128" .. string.rep("\0", (55 - #text) % 64) .. "\0\0\0\0" ..
    char(band(rshift(bits, 24), 255), band(rshift(bits, 16), 255), band(rshift(bits, 8), 255), band(bits, 255))
  local w = {}
  for i = 1, #text, 4 do
    local a, b, c, d = byte(text, i, i + 3)
    w[#w + 1] = bor(a * 16777216, b * 65536, c * 256, d)
  end
  return w
end

local K = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

-- SHA-256 (FIPS 180-4), in hexadecimal digits.
local function sha256(text)
  local m, w = words(text), {}
  local h0, h1, h2, h3, h4, h5, h6, h7 =
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
  for at = 0, #m - 1, 16 do
    for i = 1, 16 do w[i] = m[at + i] end
    for i = 17, 64 do
      local x, y = w[i - 15], w[i - 2]
      w[i] = tobit(w[i - 16] + bxor(ror(x, 7), ror(x, 18), rshift(x, 3)) + w[i - 7] + bxor(ror(y, 17), ror(y, 19), rshift(y, 10)))
    end
    local a, b, c, d, e, f, g, h = h0, h1, h2, h3, h4, h5, h6, h7
    for i = 1, 64 do
      local t1 = tobit(h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(band(e, f), band(bnot(e), g)) + K[i] + w[i])
      local t2 = tobit(bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + bxor(band(a, b), band(a, c), band(b, c)))
      a, b, c, d, e, f, g, h = tobit(t1 + t2), a, b, c, tobit(d + t1), e, f, g
    end
    h0, h1, h2, h3 = tobit(h0 + a), tobit(h1 + b), tobit(h2 + c), tobit(h3 + d)
    h4, h5, h6, h7 = tobit(h4 + e), tobit(h5 + f), tobit(h6 + g), tobit(h7 + h)
  end
  return tohex(h0) .. tohex(h1) .. tohex(h2) .. tohex(h3) .. tohex(h4) .. tohex(h5) .. tohex(h6) .. tohex(h7)
end

-- SHA-1 (FIPS 180-4), as 20 bytes.
local function sha1(text)
  local m, w = words(text), {}
  local h0, h1, h2, h3, h4 = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0
  for at = 0, #m - 1, 16 do
    for i = 1, 16 do w[i] = m[at + i] end
    for i = 17, 80 do w[i] = rol(bxor(w[i - 3], w[i - 8], w[i - 14], w[i - 16]), 1) end
    local a, b, c, d, e = h0, h1, h2, h3, h4
    for i = 1, 80 do
      local f, k
      if i <= 20 then f, k = bor(band(b, c), band(bnot(b), d)), 0x5a827999
      elseif i <= 40 then f, k = bxor(b, c, d), 0x6ed9eba1
      elseif i <= 60 then f, k = bor(band(b, c), band(b, d), band(c, d)), 0x8f1bbcdc
      else f, k = bxor(b, c, d), 0xca62c1d6 end
      a, b, c, d, e = tobit(rol(a, 5) + f + e + k + w[i]), a, rol(b, 30), c, d
    end
    h0, h1, h2, h3, h4 = tobit(h0 + a), tobit(h1 + b), tobit(h2 + c), tobit(h3 + d), tobit(h4 + e)
  end
  local out = ""
  for _, h in ipairs({h0, h1, h2, h3, h4}) do
    out = out .. char(band(rshift(h, 24), 255), band(rshift(h, 16), 255), band(rshift(h, 8), 255), band(h, 255))
  end
  return out
end

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local digit = {}
for i = 1, 64 do digit[byte(alphabet, i)] = i - 1 end

-- Decodes base 64 (RFC 4648); nil where it is none.
local function decode64(text)
  -- Not by a pattern, which would take the square of their number.
  local last = #text
  while byte(text, last) == 61 do last = last - 1 end
  local out, bits, have = {}, 0, 0
  for i = 1, last do
    local d = digit[byte(text, i)]
    if not d then return nil end
    bits, have = bits * 64 + d, have + 6
    if have >= 8 then
      have = have - 8
      local unit = 2 ^ have
      local b = (bits - bits % unit) / unit
      out[#out + 1] = char(b)
      bits = bits - b * unit
    end
  end
  return table.concat(out)
end

local function encode64(text)
  local out = {}
  for i = 1, #text, 3 do
    local a, b, c = byte(text, i, i + 2)
    local n = a * 65536 + (b or 0) * 256 + (c or 0)
    for shift = 3, 0, -1 do
      local at = (n - n % 64 ^ shift) / 64 ^ shift % 64
      out[#out + 1] = (shift == 1 and not b or shift == 0 and not c) and "=" or sub(alphabet, at + 1, at + 1)
    end
  end
  return table.concat(out)
end

local function unescape(text)
  if not find(text, "%", 1, true) then return text end
  return (gsub(text, "%%(%x%x)", function(hex) return char(tonumber(hex, 16)) end))
end

-- How many values are looked at of a request: what is more is none.
local most = 16

local function trimmed(text)
  local from, to = 1, #text
  while from <= to and byte(text, from) <= 32 do from = from + 1 end
  while from <= to and byte(text, to) <= 32 do to = to - 1 end
  return sub(text, from, to)
end

-- Calls with the name and the value of each pair in a text, until the answer is not nil.
local function pairsIn(text, separators, call)
  for pair in string.gmatch(text, separators) do
    local equals = find(pair, "=", 1, true)
    local found = equals and call(sub(pair, 1, equals - 1), sub(pair, equals + 1))
    if found then return found end
  end
end

-- Calls with each value of a header, until the answer is not nil.
local function values(headers, name, call)
  for i = 0, headers:getNumValues(name) - 1 do
    local found = call(headers:getAtIndex(name, i) or "")
    if found then return found end
  end
end

-- Calls with what is at a place of a request that is a credential's, until the answer is not nil.
local function at(headers, from, call)
  if from.header then
    local prefix = from.prefix
    return values(headers, from.header, function(value)
      if not prefix then return call(value) end
      if lower(sub(value, 1, #prefix)) == prefix then return call(sub(value, #prefix + 1)) end
    end)
  end
  if from.query then
    local path = headers:get(":path") or ""
    local query = find(path, "?", 1, true)
    return query and pairsIn(sub(path, query + 1), "[^&]+", function(name, value)
      if (name == from.query or #name <= 3 * #from.query and unescape(name) == from.query) and #value <= 3 * longest then
        return call(unescape(value))
      end
    end)
  end
  return values(headers, "cookie", function(line)
    return pairsIn(line, "[^;]+", function(name, value)
      if trimmed(name) == from.cookie and #value <= longest then
        value = trimmed(value)
        return call(string.match(value, '^"(.*)"$') or value)
      end
    end)
  end)
end

-- The certificate that the listener has verified: its names, and its subject; nil for none. Where
-- clients without a valid one are let in, Envoy says of each connection whether it was. Where they
-- aren't, the header of the connection manager's says so, which never is a client's: of a session
-- that is resumed the other way says nothing.
local function verified(headers, connection)
  local tls = connection()
  if not tls or not tls:peerCertificatePresented() then return nil end
  if not tls:peerCertificateValidated() and not headers:get("x-forwarded-client-cert") then return nil end
  return tls
end

-- The name by which a certificate is one of a rule's; nil where it is none.
local function nameOf(rule, tls)
  local hosts, uris = tls:dnsSansPeerCertificate(), tls:uriSanPeerCertificate()
  for _, uri in ipairs(uris) do
    if (rule.any or rule.uris[uri]) and not find(uri, "%c") then return uri end
  end
  for _, host in ipairs(hosts) do
    host = lower(host)
    -- A certificate for *.x is for servers of any name there, and says of no client which it is.
    local one = not find(host, "*", 1, true)
    local wild = gsub(host, "^[^.]+%.", "*.", 1)
    if (rule.any or one and (rule.hosts[host] or rule.hosts[wild])) and not find(host, "%c") then return host end
  end
  if not rule.any then return nil end
  return (gsub(tls:subjectPeerCertificate(), "%c", ""))
end

-- The client whose key, password or certificate a request has, and where it has the first two; nil for
-- nobody. It costs the same whether there is a user of the name.
local function clientOf(rule, headers, try, connection)
  if rule.hosts then
    local tls = verified(headers, connection)
    return tls and nameOf(rule, tls)
  end
  if rule.users then
    local from = {header = "authorization", prefix = "basic "}
    return at(headers, from, function(value)
      return try(value, function()
        local user, password = string.match(decode64(trimmed(value)) or "", "^([^:]*):(.*)$")
        local sum = sha256(rule.salt .. encode64(sha1(password or "")))
        if user and rule.users[user] == sum then return user end
      end)
    end), from
  end
  for _, from in ipairs(rule.from) do
    local found = at(headers, from, function(value)
      return try(value, function() return rule.keys[sha256(rule.salt .. value)] end)
    end)
    if found then return found, from end
  end
end

function envoy_on_request(handle)
  local headers, metadata = handle:headers(), handle:streamInfo():dynamicMetadata()
  local token = metadata:get("envoy.filters.http.jwt_authn")
  local passed, client = token ~= nil and token["jwt"] ~= nil, nil
  local tries = 0
  local function try(value, look)
    if value == "" or #value > longest or tries >= most then return nil end
    tries = tries + 1
    return look()
  end
  local function connection() return handle:streamInfo():downstreamSslConnection() end
  if passed then
    if isMixed(token) then return refuse(handle, headers, token) end -- whatever comes behind would take its claims for true
    tellClaims(headers, token)
  else
    for _, rule in ipairs(rules) do
      local from
      client, from = clientOf(rule, headers, try, connection)
      if client then
        passed = true
        if rule.hide then hide(headers, from) end
        if rule.header then headers:replace(rule.header, client) end
        break
      end
    end
  end
  if leadIn and not leadIn(headers, metadata, passed) then return end
  if required and not passed then return refuse(handle, headers, token) end
  metadata:set("gatehouse.access", "passed", true)
  if client then metadata:set("gatehouse.access", "client", client) end
end
