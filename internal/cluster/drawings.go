package cluster

import (
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// drawings draws all objects, for readers of the fleet API. A drawing serves for a while: at 5,000 routes one takes
// as long as many edits.
type drawings struct {
	pipeline *pipeline.Pipeline

	mu   sync.Mutex
	last topology.Drawing
	at   time.Time
	took time.Duration
}

// A drawing is this old at most, or as many times as old as it took.
const (
	drawingAge   = time.Second
	drawingShare = 20
)

func (d *drawings) draw() topology.Drawing {
	d.mu.Lock()
	defer d.mu.Unlock()
	if began := time.Now(); began.Sub(d.at) > max(drawingAge, drawingShare*d.took) {
		d.last = view.DrawnOf(d.pipeline, object.Key{}, "").Drawing
		d.at = time.Now()
		d.took = d.at.Sub(began)
	}
	return d.last
}
