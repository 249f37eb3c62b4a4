package key

import (
	"context"
	"fmt"
	"sync"

	"github.com/sledctl/sledctl/host"
)

// Ring gives the keys of disks, and asks its source once for each epoch. It is
// safe for concurrent use.
type Ring struct {
	source Source
	dir    string

	mu      sync.Mutex
	secrets map[uint64]Secret
	latest  *uint64
}

// NewRing is a ring whose key files will lie in dir; empty: DefaultDir.
func NewRing(source Source, dir string) *Ring {
	if dir == "" {
		dir = DefaultDir
	}
	return &Ring{source: source, dir: dir, secrets: map[uint64]Secret{}}
}

// Dir is where its key files lie.
func (r *Ring) Dir() string { return r.dir }

// Source is where its secrets come from.
func (r *Ring) Source() Source { return r.source }

// Key is that of a disk in an epoch. Errors: those of Source.Secret.
func (r *Ring) Key(ctx context.Context, h host.Host, epoch uint64, identity string) (Key, error) {
	secret, err := r.secret(ctx, h, epoch)
	if err == nil {
		var k Key
		if k, err = secret.Derive(identity, r.dir); err == nil {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("key of %s: %w", identity, err)
}

func (r *Ring) secret(ctx context.Context, h host.Host, epoch uint64) (Secret, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, known := r.secrets[epoch]; known {
		return s, nil
	}
	s, err := r.source.Secret(ctx, h, epoch)
	if err == nil {
		r.secrets[epoch] = s
	}
	return s, err
}

// Latest is the newest epoch of the source.
func (r *Ring) Latest(ctx context.Context, h host.Host) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest != nil {
		return *r.latest, nil
	}
	latest, err := r.source.Latest(ctx, h)
	if err != nil {
		return 0, err
	}
	r.latest = &latest
	return latest, nil
}
