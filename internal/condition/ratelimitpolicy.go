package condition

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RateLimitPolicyInvalid says what is wrong with a RateLimitPolicy. Limits that are broken are
// left out.
func RateLimitPolicyInvalid(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid,
		joined(problems)+". What is broken limits nothing; the other limits are in force")
}

// RateLimitPolicyEmpty is RateLimitPolicyInvalid of a policy without limits.
func RateLimitPolicyEmpty(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, joined(problems)+". Until it has some, what is inherited stays in force")
}

// UnknownCounter says what requests can be counted by, in place of a text that is no counter.
func UnknownCounter(text string) string {
	return fmt.Sprintf("is %q, which is no counter; use client.address, auth.client, auth.claims.NAME such as auth.claims.sub, "+
		"request.headers['NAME'], request.host, request.method or request.path", text)
}

// NotCounting says that nobody counts requests for all proxies of a Gateway; why is empty while
// that is a matter of seconds.
func NotCounting(gateway, why string) string {
	return fmt.Sprintf("Nobody counts requests for all proxies of Gateway %s: %s", gateway, cmp.Or(why, "the pod for it is being started"))
}

// RedisLacks says what is to be made for what counts requests in a Redis.
func RedisLacks(kind, name, entry string) string {
	return fmt.Sprintf("there is no %s %s with the entry %s, which limits.redis of the parameters names; make it", kind, name, entry)
}

// NotePackedAnswers says that some routes have services asked for compressed answers, in which what
// they have cost can't be read.
func NotePackedAnswers(routes []string) string {
	return fmt.Sprintf("%s: the header Accept-Encoding is set, so that answers may come compressed, and then cost as many tokens as they have bytes; "+
		"set it to identity or leave it out", upTo(maxProblems, routes, ", ", " and %d more"))
}
