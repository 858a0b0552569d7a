package cluster

import (
	"context"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// missingClass logs which Gateways go on with a former class, since that which they name
// does not exist, while a replica leads.
type missingClass struct {
	tableReader[object.Name, *topology.Gateway]
	log  *slog.Logger
	told map[object.Name]string // what has been logged of a Gateway
}

func newMissingClass(p *pipeline.Pipeline, log *slog.Logger) *missingClass {
	l := &missingClass{log: log, told: map[object.Name]string{}}
	l.tableReader = tableReader[object.Name, *topology.Gateway]{p.Graph.Gateways, l.set, l.gone}
	return l
}

func (l *missingClass) set(name object.Name, gw *topology.Gateway) {
	told, frozen := l.told[name]
	switch is := gw.MissingClass != ""; {
	case is && told != gw.Accepted.Message:
		l.told[name] = gw.Accepted.Message
		l.log.Warn("a Gateway goes on with its former class", "object", "Gateway "+name.String(), "class", gw.Class, "problem", gw.Accepted.Message)
	case frozen && !is:
		delete(l.told, name)
		l.log.Info("a Gateway has a class again", "object", "Gateway "+name.String(), "class", gw.Class)
	}
}

func (l *missingClass) gone(name object.Name) {
	if _, frozen := l.told[name]; frozen {
		delete(l.told, name)
		l.log.Info("a Gateway is not frozen any more: it is gone, or has a class of another controller", "object", "Gateway "+name.String())
	}
}

func (l *missingClass) complete() {}

func (l *missingClass) changed(object.Key) {}

func (l *missingClass) run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
