package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// ValueOf returns the value of a gauge.
func ValueOf(g prometheus.Gauge) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		return 0
	}
	return m.GetGauge().GetValue()
}

// TimeOf returns the time that a gauge has in seconds since 1970; zero if it has 0.
func TimeOf(g prometheus.Gauge) time.Time {
	seconds := ValueOf(g)
	if seconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(1000 * seconds))
}
