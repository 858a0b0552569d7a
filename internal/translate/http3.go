package translate

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// QUIC returns the listener that serves a listener's chains over HTTP/3, nil where
// none of them wants that.
//
// A client that asks it for the name of a chain which doesn't may meet another that
// takes any name. The answer there is 421, and the client turns to TCP.
func QUIC(l *ir.Listener) *ir.Listener {
	var chains []ir.Chain
	for _, c := range l.Chains {
		if c.HTTP3 {
			chains = append(chains, c)
		}
	}
	if chains == nil {
		return nil
	}
	q := *l
	q.Name, q.UDP, q.Chains = quicName(l.Port), true, chains
	return &q
}

// QUICName is the name of the ir.Listener that serves a listener over HTTP/3, empty
// where none does.
func QUICName(l *topology.Listener) string {
	if !l.HTTP3 {
		return ""
	}
	return quicName(l.Port)
}

func quicName(port uint16) string { return "quic-" + strconv.Itoa(int(port)) }
