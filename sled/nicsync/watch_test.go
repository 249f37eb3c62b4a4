package nicsync

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/zone"
)

// Whatever happens to a VM is noticed within two beats, no matter what caused it;
// what is not, as other words in the ledger or a listing that fails, is no
// event.
func TestWhatIsNoticed(t *testing.T) {
	type sled struct {
		*rig
		recorded *atomic.Int32
	}
	fail := func(r *rig, command string) {
		r.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultFail, Match: command, Exit: 1, Text: "no", Times: 3})
		})
	}
	write := func(s sled, key string) {
		l, err := s.env.Ledger(s.ctx)
		if err == nil {
			_, err = l.Update(s.ctx, func(ledger.View) ([]ledger.Fact, error) { return []ledger.Fact{{Key: key, Value: []byte("1")}}, nil })
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		happens func(sled)
		noticed bool
	}{
		{"nothing", func(sled) {}, false},
		{"a zone appears", func(s sled) { s.vm(2, "configured") }, true},
		{"a zone is installed", func(s sled) { s.vm(1, "installed") }, true},
		{"a zone runs", func(s sled) {
			s.change(func(tx *world.Tx) {
				z := tx.FindZone(id(1))
				z.Kernel = &world.Kernel{ID: 7, State: "running", Config: z.Config}
			})
		}, true},
		{"a zone goes", func(s sled) { s.change(func(tx *world.Tx) { removeVM(s.t, tx, 1) }) }, true},
		{"a configuration is rewritten", func(s sled) {
			s.change(func(tx *world.Tx) {
				z := tx.FindZone(id(1))
				z.Config.Resources = append(z.Config.Resources, world.Resource{Type: "net"})
				if err := zones.SaveZone(tx, z); err != nil {
					s.t.Fatal(err)
				}
			})
		}, true},
		{"an instance is recorded", func(s sled) { s.recorded.Store(1); write(s, "instance/x") }, true},
		{"something else is recorded", func(s sled) { write(s, "base/x") }, false},
		{"it is forbidden", func(s sled) { s.forbid("web1 moves") }, true},
		{"zones cannot be listed for a while", func(s sled) { fail(s.rig, "zoneadm list") }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := sled{newRig(t, t.Context(), "D"), new(atomic.Int32)}
			defer s.sled.Close()
			s.vm(1, "configured")
			s.settings.Recorded = func(ledger.View) ([]VM, error) { return make([]VM, s.recorded.Load()), nil }
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			var news News
			go s.settings.Watch(ctx, s.watched(), &news)
			time.Sleep(10*time.Second + beat/2)
			select {
			case <-news.Some():
				t.Errorf("%s: something was noticed before", c.name)
			default:
			}
			c.happens(s)
			time.Sleep(2 * beat)
			select {
			case <-news.Some():
				if !c.noticed {
					t.Errorf("%s: it was noticed", c.name)
				}
			default:
				if c.noticed {
					t.Errorf("%s: it was not noticed", c.name)
				}
			}
			time.Sleep(10 * time.Second)
			if len(news.Some()) > 0 {
				t.Errorf("%s: it was noticed twice", c.name)
			}
		})
	}
}

func (r *rig) watched() Watched {
	return Watched{Env: r.env, Zones: func(ctx context.Context) ([]zone.Zone, error) { return zone.List(ctx, r.sled.Host()) }}
}

// duty keeps the records of a sled as an agent does, and notes when it looked.
func (r *rig) duty(ctx context.Context, p Schedule) (looks *[]string) {
	began := time.Now()
	var news News
	looks = new([]string)
	go r.settings.Watch(ctx, r.watched(), &news)
	go p.Run(ctx, &news, func(ctx context.Context, touched Touched) error {
		o := all()
		o.ConfirmTwice = 5 * time.Second
		_, err := r.settings.SyncTouched(r.ctx, r.env, o, touched)
		r.mu.Lock()
		defer r.mu.Unlock()
		*looks = append(*looks, fmt.Sprint(time.Since(began).Round(10*time.Second), " ", err == nil))
		return err
	})
	return looks
}

// A zone that is made, booted, halted and removed by hand, with zonecfg and
// zoneadm: its record follows within 6 s, of which 4 are to see whether more
// happens; also before the first look at all.
func TestRecordsFollowZonesByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.Context(), "D")
		defer r.sled.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		r.record(1, "", "provisioning")
		r.duty(ctx, Schedule{Random: func() float64 { return 0 }})
		time.Sleep(2*time.Minute - time.Second)
		if sent := r.requests(); len(sent) > 0 {
			t.Errorf("before the first look, and nothing happened: %v", sent)
		}
		for _, c := range []struct {
			program string
			args    []string
			within  time.Duration
			want    string
		}{
			{"zfs", []string{"create", "-o", "mountpoint=/zone", "rpool/zone"}, 0, " provisioning"},
			{"dladm", []string{"create-vnic", "-t", "-l", "net0", "-m", mac(1), "vm1"}, 0, " provisioning"},
			{"zonecfg", []string{"-z", id(1), "create -b; set brand=sparse; set zonepath=/zone/one; set ip-type=exclusive; add net; set physical=vm1; end"}, 6 * time.Second, "ours provisioning"},
			{"zoneadm", []string{"-z", id(1), "install"}, 6 * time.Second, "ours stopped"},
			{"zoneadm", []string{"-z", id(1), "boot"}, 6 * time.Second, "ours running"},
			{"zoneadm", []string{"-z", id(1), "halt"}, 6 * time.Second, "ours stopped"},
			{"zoneadm", []string{"-z", id(1), "uninstall", "-F"}, 6 * time.Second, "ours stopped"},
			{"dladm", []string{"delete-vnic", "vm1"}, 0, "ours stopped"},
			{"zonecfg", []string{"-z", id(1), "delete", "-F"}, 6 * time.Second, "gone"},
		} {
			reply, err := r.sled.Host().Run(t.Context(), host.Command{Program: c.program, Args: c.args})
			if err != nil || reply.Exit != 0 {
				t.Fatalf("%s %v: exit %d: %s%s %v", c.program, c.args, reply.Exit, reply.Stdout, reply.Stderr, err)
			}
			time.Sleep(c.within)
			if got := r.has(1); got != c.want {
				t.Errorf("after %s %v: %s, want %s", c.program, c.args, got, c.want)
			}
		}
	})
}

// Nothing happens, and it looks every hour; the file that forbids stops it at
// once, and its removal is an event; a NAPI that is another one by now is found
// out hours later.
func TestADutyOverHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.Context(), "D")
		defer r.sled.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		looks := r.duty(ctx, Schedule{Random: func() float64 { return 0.5 }})
		expect := func(when string, want ...string) {
			t.Helper()
			r.mu.Lock()
			defer r.mu.Unlock()
			if fmt.Sprint(*looks) != fmt.Sprint(want) {
				t.Errorf("%s: looks at %v, want %v", when, *looks, want)
			}
			*looks = nil
		}
		at := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		at(2 * time.Hour)
		expect("quiet hours", "6m0s true", "1h6m0s true")
		r.forbid("web1 moves")
		r.record(3, ours, "running")
		at(time.Minute)
		expect("it is forbidden", "2h0m10s false")
		r.requests()
		r.vm(1, "installed")
		at(time.Minute)
		expect("a VM comes meanwhile", "2h1m10s false")
		if sent := r.requests(); len(sent) > 0 || r.has(3) != "ours running" {
			t.Errorf("while it is forbidden: %v", sent)
		}
		if err := r.sled.Host().Files().Remove("/etc/sledctl/nics.lock"); err != nil {
			t.Fatal(err)
		}
		at(time.Minute)
		expect("it is allowed", "2h2m10s true")
		if r.has(3) != "gone" {
			t.Error("what is leaked did not go")
		}
		r.change(func(tx *world.Tx) { tx.State.NAPI.Era = "B" })
		r.vm(1, "configured")
		at(2 * time.Hour)
		expect("NAPI is an old one", "2h3m10s true", "3h2m10s false")
		r.change(func(tx *world.Tx) { tx.State.NAPI.Era = "D" })
		r.record(1, ours, "running")
		at(3 * time.Hour)
		expect("it is of today", "4h32m10s true", "5h32m10s true", "6h32m10s true")
	})
}
