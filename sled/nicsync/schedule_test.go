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

	"github.com/google/go-cmp/cmp"

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
			go Schedule{Random: r.Float64}.Run(ctx, &News{}, func(context.Context, Touched) error { looks <- time.Since(began); return nil })
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

// What something happened to is looked at 4 s later, together with what happens
// meanwhile: before the first look at all, and where NAPI cannot list, too. What is
// looked at in vain is looked at again. What happens to all waits for the first look,
// and for a NAPI that can list.
func TestWhenASledLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		began := time.Now()
		var news News
		var mu sync.Mutex
		var looks []string
		var fails, failsAll error
		go Schedule{Random: func() float64 { return 0.5 }}.Run(ctx, &news, func(_ context.Context, touched Touched) error {
			mu.Lock()
			defer mu.Unlock()
			what := fmt.Sprint(touched.MACs)
			if touched.All {
				what = "all" + what
			}
			looks = append(looks, fmt.Sprint(time.Since(began), " ", what))
			if touched.All && failsAll != nil {
				return failsAll
			}
			return fails
		})
		answer := func(one, all error) { mu.Lock(); defer mu.Unlock(); fails, failsAll = one, all }
		at := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		happen := func(d time.Duration, macs ...string) { at(d); news.Tell(Touched{MACs: macs, All: len(macs) == 0}) }
		happen(time.Minute, "a") // the first look at all is at 6 minutes all the same
		happen(90 * time.Second)
		happen(10*time.Minute, "a")
		happen(10*time.Minute+2*time.Second, "b")
		happen(10*time.Minute+3*time.Second, "a")
		happen(12 * time.Minute)
		at(13 * time.Minute)
		answer(fmt.Errorf("down: %w", host.ErrTransient), nil)
		happen(20*time.Minute, "c")
		at(20*time.Minute + 8*time.Second)
		happen(20*time.Minute+8*time.Second, "d")
		at(20*time.Minute + 12*time.Second)
		answer(errors.New("it is forbidden"), nil)
		at(30 * time.Minute)
		answer(nil, &UnsupportedError{})
		happen(31 * time.Minute) // it is allowed again, and NAPI is an old one by now
		happen(40 * time.Minute)
		happen(50*time.Minute, "e")
		at(2 * time.Hour)
		answer(nil, nil)
		at(4 * time.Hour)
		want := []string{
			"1m4s [a]", "6m0s all[]", "10m4s [a b]", "12m4s all[]",
			"20m4s [c]", "20m7s [c]", "20m13s [c d]", // forbidden: it waits
			"31m4s all[c d]", "31m8s [c d]", "50m4s [e]", "2h1m4s all[]", "3h1m4s all[]",
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, looks); diff != "" {
			t.Error(diff)
		}
	})
}
