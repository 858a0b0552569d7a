-- Says what those are told who don't meet a condition. The backend's own answers, whatever their
-- status is, are none that the last of the conditions has given.
function envoy_on_response(handle)
  local conditions = handle:streamInfo():dynamicMetadata():get("envoy.filters.http.rbac")
  local headers = handle:headers()
  if not conditions or conditions["enforced_engine_result"] ~= "denied" or headers:get(":status") ~= "403" then return end
  for name, value in pairs(forbidden.headers) do headers:replace(name, value) end
  local body = handle:body() -- waits, so that the headers are out of reach
  if body then body:setBytes(forbidden.body) end
end
