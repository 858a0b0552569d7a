package condition

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MissingField is a field that another one makes necessary.
func MissingField(field, because string) metav1.Condition {
	return unsupportedValue(field, "is missing, and %s needs it", because)
}

// SessionTimeoutNeedsCookie is a timeout of sessions that are told by a header.
func SessionTimeoutNeedsCookie(field string) metav1.Condition {
	return unsupportedValue(field, "a session by header can't be given an end, since its value has no room for one; remove it, or use type Cookie")
}

// SessionTimeoutNeedsPermanent is a timeout of cookies that end with the browser.
func SessionTimeoutNeedsPermanent(field string) metav1.Condition {
	return unsupportedValue(field, "only a cookie that outlives the browser can be given an end; remove it, or set cookie.lifetimeType to Permanent")
}

// SessionTooShort is a session without duration.
func SessionTooShort(field, value string) metav1.Condition {
	return unsupportedValue(field, "%s is shorter than a second, the least that a cookie can last", quote(value))
}

// InvalidCookiePath is a path that would not be one path in a Set-Cookie header.
func InvalidCookiePath(field, path string) metav1.Condition {
	return unsupportedValue(field, "%s is not a cookie's path; begin with / and use neither semicolons nor control characters nor spaces", quote(path))
}

// InvalidCookieName is a name that can't stand in a Set-Cookie header.
func InvalidCookieName(field, name string) metav1.Condition {
	return unsupportedValue(field, "%s is not a cookie's name; use letters, digits and !#$%%&'*+-.^_`|~", quote(name))
}

// SessionHeaderTaken is a header that means something else to HTTP or to Envoy.
func SessionHeaderTaken(field, name string) metav1.Condition {
	return unsupportedValue(field, "header %s has a meaning of its own; use another name, such as X-Session", quote(name))
}
