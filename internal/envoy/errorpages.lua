-- Asks backends for the pages of errors. Before it stand, written by Go: `namespace`, under which a request is written down until
-- it is answered; `timeout`, in milliseconds; `most`, how many bytes an error may have; and `pages`, the name of a cluster by statuses, such as "404", and classes, such as
-- "5xx", with those that other pages are for as false.

local kept = {":method", ":path", ":authority", "accept", "accept-language", "x-request-id", "x-forwarded-for"}

function envoy_on_request(handle)
  local headers, metadata = handle:headers(), handle:streamInfo():dynamicMetadata()
  for _, name in ipairs(kept) do
    local value = headers:get(name)
    if value then metadata:set(namespace, name, value) end
  end
  if string.find(headers:get("content-type") or "", "^application/grpc") then metadata:set(namespace, "grpc", "yes") end
end

function envoy_on_response(handle)
  local status = handle:headers():get(":status") or ""
  local cluster = pages[status]
  if cluster == nil then cluster = pages[string.sub(status, 1, 1) .. "xx"] end
  local request = handle:streamInfo():dynamicMetadata():get(namespace)
  -- The whole error is held back until there is a page, which can't be for longer ones.
  if (tonumber(handle:headers():get("content-length") or "") or 0) > most then return end
  -- Browsers ask for a password by headers; answers to HEAD have no body, and calls of gRPC no pages.
  if not cluster or not request or status == "401" or status == "407" or request[":method"] == "HEAD" or request.grpc then return end

  local asked = {
    [":method"] = "GET", [":path"] = "/", [":authority"] = request[":authority"],
    ["x-code"] = status, ["x-format"] = request.accept, ["accept"] = request.accept, ["accept-language"] = request["accept-language"],
    ["x-original-method"] = request[":method"], ["x-original-uri"] = request[":path"], ["x-request-id"] = request["x-request-id"],
    ["x-forwarded-for"] = request["x-forwarded-for"],
  }
  local of, name = string.match(handle:streamInfo():routeName() or "", "^[^/]*/([^/]*)/([^/]*)")
  asked["x-namespace"], asked["x-route-name"] = of, name
  -- Envoy gives no body that has come while the script waited for something else.
  handle:body(true)
  local headers, body = handle:httpCall(cluster, asked, "", {timeout_ms = timeout, send_xff = false})

  -- Without an answer of the backend there is one of Envoy's own, which has no time that a backend took.
  local code = headers[":status"] or ""
  if not headers["x-envoy-upstream-service-time"] or not (string.find(code, "^2") or code == status) then return end
  if string.lower(headers["content-encoding"] or "identity") ~= "identity" then return end
  local answer = handle:headers()
  for _, header in ipairs({"content-encoding", "etag", "last-modified", "accept-ranges", "content-range", "content-md5", "digest", "content-digest", "repr-digest"}) do
    answer:remove(header)
  end
  answer:replace("content-type", headers["content-type"] or "text/html; charset=utf-8")
  answer:replace("content-length", tostring(handle:body(true):setBytes(body or "")))
end
