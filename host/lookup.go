package host

// Lookup fails with ErrNoCommand, naming the programs and where they were looked
// for, if h does not have all of them. A host that cannot tell has them.
func Lookup(h Host, programs ...string) error {
	if l, ok := h.(interface {
		Lookup(programs ...string) error
	}); ok {
		return l.Lookup(programs...)
	}
	return nil
}

// Privileged fails with ErrPrivileges if commands of h that change something
// would be refused. A host that cannot tell refuses none.
func Privileged(h Host) error {
	if p, ok := h.(interface{ Privileged() error }); ok {
		return p.Privileged()
	}
	return nil
}

// Decorators pass both on.

// Lookup is that of the host below.
func (t *traced) Lookup(programs ...string) error { return Lookup(t.host, programs...) }

// Privileged is that of the host below.
func (t *traced) Privileged() error { return Privileged(t.host) }

// Lookup is that of the host below.
func (r readOnly) Lookup(programs ...string) error { return Lookup(r.host, programs...) }

// Privileged is that of the host below.
func (r readOnly) Privileged() error { return Privileged(r.host) }

// Lookup is that of the host below.
func (c *Crashing) Lookup(programs ...string) error { return Lookup(c.host, programs...) }

// Privileged is that of the host below.
func (c *Crashing) Privileged() error { return Privileged(c.host) }
