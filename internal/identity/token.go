package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Audience is the audience that a token must have. Tokens for the API server, or for any
// other audience, are refused here, and the API server refuses ours.
const Audience = "gatehouse.dev"

// holder is the pod that a token belongs to, as the API server says.
type holder struct {
	namespace, serviceAccount string
	pod, podUID               string
}

// claims are the claims of a token before it is verified. They are not trusted. They give
// the reason for refusing a token that can't be valid, without a request to the API server.
type claims struct {
	Audience   audiences `json:"aud"`
	Expiry     float64   `json:"exp"`
	Kubernetes struct {
		Pod struct {
			UID string `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// maxUID is more than the longest UID of an object.
const maxUID = 64

// audiences are written as one or as a list.
type audiences []string

func (a *audiences) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// readClaims reads what a token claims.
func readClaims(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return claims{}, false
	}
	return c, true
}

// inspect refuses tokens that can't be valid.
func inspect(token string, now time.Time) *refusal {
	c, ok := readClaims(token)
	if !ok {
		return refuse(reasonMalformed, "the token is not a JSON web token")
	}
	if !slices.Contains(c.Audience, Audience) {
		return refuse(reasonAudience, "the token is not for the audience "+Audience)
	}
	if expiry := time.Unix(int64(c.Expiry), 0); !now.Before(expiry) {
		return refuse(reasonExpired, "the token expired at "+expiry.UTC().Format(time.RFC3339))
	}
	return nil
}

// review asks the API server whose token it is.
func review(ctx context.Context, c client.Client, token string) (*holder, error) {
	r := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}
	if err := c.Create(ctx, r); err != nil {
		return nil, fmt.Errorf("review of a token: %w", err)
	}
	if !r.Status.Authenticated || !slices.Contains(r.Status.Audiences, Audience) {
		return nil, refuse(reasonToken, "the API server does not accept the token")
	}
	account, ok := strings.CutPrefix(r.Status.User.Username, "system:serviceaccount:")
	namespace, name, two := strings.Cut(account, ":")
	if !ok || !two {
		return nil, refuse(reasonForeign, "the token is not one of a ServiceAccount")
	}
	h := &holder{
		namespace:      namespace,
		serviceAccount: name,
		pod:            only(r.Status.User.Extra["authentication.kubernetes.io/pod-name"]),
		podUID:         only(r.Status.User.Extra["authentication.kubernetes.io/pod-uid"]),
	}
	if h.pod == "" || h.podUID == "" {
		return nil, refuse(reasonUnbound, fmt.Sprintf("the token of ServiceAccount %s/%s is not bound to a pod", namespace, name))
	}
	return h, nil
}

// only returns the element of a list of one.
func only(values authenticationv1.ExtraValue) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}
