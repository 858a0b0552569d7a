package identity

import (
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure an Authority.
type Options struct {
	// Client reads and writes the API server itself, not a cache. It must be
	// allowed to create Secrets in the namespace, and to get and update this one; where
	// there is Published, to get, create and patch that.
	Client client.Client

	// Namespace and Secret are where the roots are: the controllers' namespace and
	// "gatehouse-ca" if empty. The first controller makes the Secret.
	Namespace string
	Secret    string

	// Published, if not empty, names a ConfigMap in Namespace that has the certificates
	// of all roots to trust, in PEM, as ca.crt: for proxies that are not made by the controller.
	Published string

	// Pod is this controller's name, Service the name that proxies reach all
	// controllers by, in the same namespace.
	Pod     string
	Service string

	// RootLife is how long a root is valid, one year if zero. Its successor is made
	// when two thirds are over.
	RootLife time.Duration
	// Distribution is how long a new root is only trusted before it signs: so long
	// that every proxy has it by then, but not so long that the old root ends before
	// what it signs. If zero, a twelfth of RootLife, and a day at most.
	Distribution time.Duration
	// Life is how long a certificate of a proxy or controller is valid, an hour if
	// zero. They are renewed when two thirds are over.
	Life time.Duration
	// Interval is how often the Secret is looked at, 10 s if zero.
	Interval time.Duration

	// Log gets what an operator should see; slog.Default if nil.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Secret == "" {
		o.Secret = "gatehouse-ca"
	}
	o.RootLife = orElse(o.RootLife, 365*24*time.Hour)
	o.Distribution = orElse(o.Distribution, min(24*time.Hour, o.RootLife/12))
	o.Life = orElse(o.Life, time.Hour)
	o.Interval = orElse(o.Interval, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

func orElse(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

func (o *Options) periods() periods {
	return periods{
		root:         o.RootLife,
		distribution: o.Distribution,
		// A controller that has not read the change goes on signing for a while.
		overlap: o.Life + skew + 2*o.Interval,
	}
}
