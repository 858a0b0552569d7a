package status

import "github.com/gatehouse-dev/gatehouse/internal/ir"

// ProxyState is what the proxies of one Gateway say.
type ProxyState struct {
	// Connected says whether at least one proxy is there.
	Connected bool
	// Behind says, where not all proxies have the newest configuration, how many do and
	// why; empty otherwise.
	Behind string
	// Listeners are the Envoy listeners (ir.Listener.Name) that a connected proxy
	// has acknowledged.
	Listeners map[string]bool
	// Waits says what is waited for where no proxies of ours serve; empty where they do.
	Waits string
	// Rejected is what a proxy refuses.
	Rejected map[Ref]Rejection
}

// Withheld is what the proxies of a Gateway are not told, since something that it may depend on
// can't be computed.
type Withheld int

// What proxies are not told.
const (
	WithheldNothing Withheld = iota
	WithheldNext             // they have been told everything so far, and what comes waits
	WithheldNewest           // something waits
)

// Ref names something that a proxy can refuse.
type Ref struct {
	Kind RefKind
	Name string
}

// SecretRef names a secret.
func SecretRef(k ir.SecretKey) Ref { return Ref{RefSecret, k.String()} }

// RefKind is the kind of what a Ref names.
type RefKind string

// The kinds of what proxies refuse, with what their names look like.
const (
	RefListener RefKind = "listener" // http-80
	RefSecret   RefKind = "secret"   // as ir.SecretKey prints it
	RefHost     RefKind = "host"     // the domain
	RefBackend  RefKind = "backend"  // as ir.BackendKey prints it
	RefAccess   RefKind = "access"   // the filter that decides it for a divided table
	RefLimits   RefKind = "limits"   // the filter that has them
	RefForward  RefKind = "forward"  // the filter that does it
)

// Rejection is why a proxy refuses something.
type Rejection struct {
	Message  string // Envoy's
	KeepsOld bool   // whether the last version that it accepted is in force
}
