package nexus

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// How an instance comes to its end, and what is kept of each until then.

// Remove takes an instance out of use: its VM is stopped, and then its local disk removed (omicron
// nexus/src/app/sagas/instance_delete.rs). Reconcile repeats what a sled did not finish.
func (p Plane) Remove(ctx context.Context, name string) error {
	n, err := p.kept(ctx)
	if err != nil {
		return err
	}
	i, there := n.Instances[name]
	if !there {
		return fmt.Errorf("there is no instance %q", name)
	}
	i.Removing = true
	if err := p.note(ctx, *i); err != nil {
		return err
	}
	return p.remove(ctx, *i)
}

func (p Plane) remove(ctx context.Context, i world.NexusInstance) error {
	n, err := p.kept(ctx)
	if err == nil && i.VM != "" {
		err = p.stop(ctx, at(&n, i.Sled), i.VM)
	}
	if err == nil && i.Disk != "" {
		err = p.tell(ctx, at(&n, i.Sled), http.MethodDelete, "/local-storage", localDisk(i))
	}
	if err != nil {
		return err
	}
	return p.update(ctx, func(_ *world.Tx, n *world.Nexus) error { delete(n.Instances, i.Name); return nil })
}

// stop stops a VM, waits until it has ended, and has the sled forget it.
func (p Plane) stop(ctx context.Context, sled, vm string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for told := false; ; {
		v, check := p.get(ctx, sled, vm)
		switch {
		case check == checkGone || check == checkOK && ended(v.VM.State):
			return p.tell(ctx, sled, http.MethodDelete, "/vmms/"+vm, nil)
		case check != checkOK:
			return fmt.Errorf("it is not known whether VM %s has ended: %s", vm, check)
		case !told:
			if err := p.tell(ctx, sled, http.MethodPut, "/vmms/"+vm+"/state", becomes("stopped")); err != nil {
				return err
			}
			told = true
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("VM %s is %s: %w", vm, v.VM.State, err)
		}
	}
}

// How often, and for how long, it is asked whether a VM has come to what it is to become.
const (
	often    = 20 * time.Millisecond
	patience = time.Minute
)

// pause waits until it is time to ask again. Errors: why ctx has ended.
func pause(ctx context.Context) error {
	select {
	case <-time.After(often):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// address is the n-th of the subnet.
func address(n int) string { return fmt.Sprintf("172.30.%d.%d", n/250, 5+n%250) }

// free is the first address that no instance has.
func free(all map[string]*world.NexusInstance) (n int) {
	used := map[string]bool{}
	for _, i := range all {
		used[i.IP] = true
	}
	for used[address(n)] {
		n++
	}
	return n
}

// note keeps an instance as it is now.
func (p Plane) note(ctx context.Context, i world.NexusInstance) error {
	return p.update(ctx, func(_ *world.Tx, n *world.Nexus) error {
		if n.Instances == nil {
			n.Instances = map[string]*world.NexusInstance{}
		}
		n.Instances[i.Name] = &i
		return nil
	})
}
