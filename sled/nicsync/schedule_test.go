package nicsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
)

// 1,000 sleds that start at once first look evenly spread over 8 minutes.
func TestAThousandSledsSpreadTheirFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sleds = 1000
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		looks := make(chan time.Duration, sleds)
		for n := range sleds {
			r := rand.New(rand.NewPCG(uint64(n), 58))
			go Schedule{Random: r.Float64}.Run(ctx, nil, func(context.Context) error { looks <- time.Since(began); return nil })
		}
		var histogram [16]int // of half minutes from 2 to 10 minutes
		for range sleds {
			at := <-looks
			if at < 2*time.Minute || at >= 10*time.Minute {
				t.Fatal(at)
			}
			histogram[(at-2*time.Minute)/(30*time.Second)]++
		}
		cancel()
		synctest.Wait()
		chi := 0.0
		for i, n := range histogram {
			t.Logf("%4.1f min %3d %s", 2+float64(i)/2, n, strings.Repeat("#", n/2))
			d := float64(n) - sleds/16.0
			chi += d * d / (sleds / 16.0)
		}
		if chi > 37.7 { // 15 degrees of freedom, one time in a thousand
			t.Errorf("it is not even: chi squared %.1f", chi)
		}
	})
}

func TestNext(t *testing.T) {
	half := Schedule{Random: func() float64 { return 0.5 }}
	old := &UnsupportedError{}
	down := fmt.Errorf("x: %w", host.ErrTransient)
	for _, c := range []struct {
		err      error
		failures int
		want     time.Duration
		eager    bool
	}{
		{nil, 0, time.Hour, true}, {errors.New("x"), 1, time.Hour, true},
		{down, 1, 3 * time.Second, false}, {down, 2, 6 * time.Second, false}, {down, 50, 48 * time.Second, false},
		{old, 1, 90 * time.Minute, false}, {old, 2, 3 * time.Hour, false}, {old, 3, 6 * time.Hour, false}, {old, 100, 6 * time.Hour, false},
	} {
		if got, eager := half.Next(c.err, c.failures); got != c.want || eager != c.eager {
			t.Errorf("%v, %d: %v %v, want %v %v", c.err, c.failures, got, eager, c.want, c.eager)
		}
	}
	for _, random := range []float64{0, 0.999999} {
		p := Schedule{Random: func() float64 { return random }}
		if got, _ := p.Next(nil, 0); got < 54*time.Minute || got > 66*time.Minute {
			t.Error(got)
		}
	}
}

// Events are looked at together, 5 s after the first; not before the first look,
// and not while NAPI cannot be asked. A NAPI that was upgraded is noticed.
func TestWhenASledLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		began := time.Now()
		events := make(chan struct{})
		var mu sync.Mutex
		var looks []time.Duration
		var fails error
		go Schedule{Random: func() float64 { return 0.5 }}.Run(ctx, events, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, time.Since(began))
			return fails
		})
		answer := func(err error) { mu.Lock(); defer mu.Unlock(); fails = err }
		at := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		happen := func(d time.Duration) { at(d); events <- struct{}{} }
		happen(time.Minute) // the first look is at 6 minutes all the same
		happen(10 * time.Minute)
		happen(10*time.Minute + 3*time.Second)
		happen(10*time.Minute + 4*time.Second)
		at(11 * time.Minute)
		answer(&UnsupportedError{})
		happen(20 * time.Minute) // that look finds an old NAPI: the next is 90 minutes later
		happen(30 * time.Minute)
		at(100 * time.Minute)
		answer(nil)
		at(4 * time.Hour)
		want := []time.Duration{
			6 * time.Minute, 10*time.Minute + 5*time.Second, 20*time.Minute + 5*time.Second, 110*time.Minute + 5*time.Second,
			170*time.Minute + 5*time.Second, 230*time.Minute + 5*time.Second,
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(looks) != fmt.Sprint(want) {
			t.Errorf("looks at %v, want %v", looks, want)
		}
	})
}
