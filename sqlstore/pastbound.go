package sqlstore

import (
	"math"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// BoundByShare is the Options.RetentionBytes that grows with the objects: a tenth of the bytes of their keys and
// values, and at least LeastBound.
const BoundByShare = -1

// LeastBound is the least that BoundByShare allows.
const LeastBound = 256 << 20

const boundShare = 10 // BoundByShare is this part of the objects

// boundPast deletes old versions that are too many: those that would go first.
func (c *compactor) boundPast() error {
	if c.o.Retention == nil || c.o.RetentionBytes == 0 || !c.fit.done {
		return nil
	}
	most, err := c.pastBound()
	if err != nil {
		return err
	}
	c.stats.keptBound.Store(most)
	return c.deletePast(func(time.Time) (done changelog.Compacted, more bool, err error) {
		done, err = c.log.Bound(c.ctx, most, trimStep)
		c.tellShort(done.Deleted, most)
		return done, !done.Busy && done.Past > most && done.Deleted > 0, err
	})
}

// pastBound returns how many bytes of old versions may stay. It adds up the objects only if that matters.
func (c *compactor) pastBound() (int64, error) {
	if c.o.RetentionBytes > 0 {
		return c.o.RetentionBytes, nil
	}
	now, err := c.log.Bound(c.ctx, math.MaxInt64, 1)
	if err != nil || now.Past <= LeastBound {
		return LeastBound, err
	}
	objects := int64(0)
	for _, m := range c.state.copyNamed() {
		objects += usageOf(m).Bytes
	}
	return shareOf(objects), nil
}

// shareOf returns what BoundByShare allows beside objects of so many bytes.
func shareOf(objects int64) int64 { return max(LeastBound, objects/boundShare) }

// tellShort logs the first time that old versions go before their time.
func (c *compactor) tellShort(deleted, most int64) {
	if deleted == 0 || c.short {
		return
	}
	c.short = true
	c.o.Log.Info("old versions of objects take more than they may, so those that would go first go before their time", "mostBytes", most)
}
