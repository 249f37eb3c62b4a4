package agent

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sledctl/sledctl/sled/nicsync"
)

// NICs are how the agent keeps the records that NAPI has of the sled's NICs.
type NICs struct {
	nicsync.Settings
	Options nicsync.Options
	// FirstLook is the latest time after the agent's start of the first look.
	FirstLook time.Duration
}

// nics keeps the records of the sled's NICs until ctx ends: it looks when
// nicsync.Schedule says so, and soon after something happened to a VM.
func (a *agent) nics(ctx context.Context) {
	if a.NICs == nil {
		return
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	var news nicsync.News // what happens during a look brings the next
	watching.Go(func() { a.NICs.Watch(ctx, nicsync.Watched{Env: a.env, Zones: a.zones}, &news) })
	failed := ""
	nicsync.Schedule{Random: rand.Float64, Within: a.NICs.FirstLook}.Run(ctx, &news, func(ctx context.Context, touched nicsync.Touched) error {
		err := a.syncNICs(ctx, touched)
		switch {
		case ctx.Err() != nil:
		case err == nil && failed != "":
			failed = ""
			a.Log.Info("the NIC records can be kept again")
		case err != nil && err.Error() != failed: // not again each time that it is tried
			failed = err.Error()
			a.Log.Warn("the NIC records are not kept", "cause", err)
		}
		return err
	})
}

// syncNICs is one look at what something happened to, or at all, and what follows
// from it. It waits for an operator's nics sync.
func (a *agent) syncNICs(ctx context.Context, touched nicsync.Touched) error {
	env := a.env
	env.Wait, env.Observe = true, nil
	env.Warn = func(err error) { a.Log.Info("NIC records", "note", err) }
	outcome, err := a.NICs.SyncTouched(ctx, env, a.NICs.Options, touched)
	for _, f := range outcome.Findings {
		if result := outcome.Results[f.MAC]; result != "" {
			a.Log.Info("NIC record", "mac", f.MAC, "result", result, "verdict", f.Verdict, "reason", f.Reason)
		}
	}
	return err
}
