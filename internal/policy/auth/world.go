package auth

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// World is what the rules of a policy refer to. Who asks is woken by what it was told.
type World struct {
	Secret    func(object.Name) (map[string][]byte, bool)
	ConfigMap func(object.Name) (map[string]string, bool)
	// Backend follows a reference as those of routes are followed. It returns what policies of
	// backends are looked for by, and says why there is no backend that can be asked.
	Backend func(use ir.Use, ref *gwv1.BackendObjectReference, field func() string) (b ir.BackendKey, targets []object.Key, problem string)
	// TooMany says of a location that the policies of the namespace have others in its place. See KeySetsOver.
	TooMany func(keyset.Location) bool
	// Reach is where keys may be fetched from for all Gateways.
	Reach keyset.Reach
	// AnyName says that any host may be asked, also those of this machine.
	AnyName bool
	// SystemAuthorities are those that the proxies' hosts trust; zero where there are none.
	SystemAuthorities ir.SecretKey
}

// Sets is what is known of what is fetched: false where nothing has come yet.
type Sets func(keyset.Location) (keyset.Answer, bool)
