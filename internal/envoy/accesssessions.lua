-- Has no backend get the cookies of a session where people don't log in, though they do elsewhere on the host.
function envoy_on_request(handle) takeSessions(handle:headers()) end
