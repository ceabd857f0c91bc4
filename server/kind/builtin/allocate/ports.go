package allocate

import (
	"errors"
	"math/rand/v2"

	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
)

// ports allocates node ports for the Service of an attempt.
type ports struct{ *attempt }

var _ portallocator.Interface = &ports{}

// Allocate takes a port.
func (p *ports) Allocate(number int) error {
	if within := p.ports.Range; !within.Contains(number) {
		return &portallocator.ErrNotInRange{ValidPorts: within.String()}
	}
	return p.take(number)
}

func (p *ports) take(number int) error {
	err := p.ports.Take(p.ctx, number, p.owner())
	if err != nil && !errors.Is(err, portallocator.ErrAllocated) {
		p.failed = err
	}
	return err
}

// AllocateNext takes any port that is free, of the lower band only if the upper is full.
// https://kubernetes.io/blog/2023/05/11/nodeport-dynamic-and-static-allocation/
func (p *ports) AllocateNext() (int, error) {
	within := p.ports.Range
	lower := lowerBand(within.Size)
	number, err := p.allocateOf(within.Base+lower, within.Size-lower)
	if errors.Is(err, portallocator.ErrFull) && lower > 0 {
		number, err = p.allocateOf(within.Base, lower)
	}
	return number, err
}

// allocateOf takes one of size ports, beginning with a random one.
func (p *ports) allocateOf(base, size int) (int, error) {
	start := rand.IntN(size)
	for i := range size {
		number := base + (start+i)%size
		if p.Has(number) {
			continue
		}
		if err := p.take(number); err == nil {
			return number, nil
		} else if p.failed != nil {
			return 0, err
		}
	}
	return 0, portallocator.ErrFull
}

// lowerBand is the number of ports in a range that are kept for requested ports as long as
// others are free; upstream's formula.
func lowerBand(size int) int {
	const least, most, part = 16, 128, 32
	if size <= least {
		return 0
	}
	return min(max(least, size/part), most)
}

// Release gives a port back. One that is not the Service's is left alone.
func (p *ports) Release(number int) error {
	ctx, cancel := p.releasing()
	defer cancel()
	return p.ports.Release(ctx, number, p.owner())
}

// Has reports whether a port of the range is taken.
func (p *ports) Has(number int) bool {
	return p.ports.Range.Contains(number) && p.ports.IsTaken(number)
}

// Upstream's storage of Services does not call the methods below.

func (p *ports) ForEach(func(int)) {}
func (p *ports) Destroy()          {}
func (p *ports) EnableMetrics()    {}
