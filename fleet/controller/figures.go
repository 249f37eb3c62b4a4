package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sledctl/sledctl/fleet/api"
)

// figures are what Prometheus reads: of the moves that this process has seen the end of, and whether
// the brake holds.
type figures struct {
	brake prometheus.GaugeFunc
	moves *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newFigures(braked func() bool) *figures {
	by := []string{"result"}
	f := &figures{
		brake: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sledctl_fleet_brake", Help: "1 while more than half of the sleds are silent, so that none is powered off, and no volume in a Crucible taken over.",
		}, func() float64 { return map[bool]float64{true: 1}[braked()] }),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sledctl_fleet_moves_total", Help: "Moves of VMs that have ended, by their result: succeeded, or failed.",
		}, by),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sledctl_fleet_move_seconds", Help: "How long moves of VMs took, from when their generation was raised.",
			Buckets: prometheus.ExponentialBuckets(0.5, 2, 12), // to 17 min
		}, by),
	}
	for _, result := range []string{"succeeded", "failed"} { // known before the first one
		f.moves.WithLabelValues(result)
	}
	return f
}

// register has Prometheus read them.
func (f *figures) register(at prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{f.brake, f.moves, f.took} {
		if err := at.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// moved counts a move that has ended now.
func (f *figures) moved(m *api.Moving, result string) {
	f.moves.WithLabelValues(result).Inc()
	f.took.WithLabelValues(result).Observe(max(0, time.Since(m.Started.Time).Seconds()))
}
