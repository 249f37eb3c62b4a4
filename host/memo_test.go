package host_test

import (
	"testing"

	"github.com/sledctl/sledctl/host"
)

type memoKey struct{}

func TestAMachineIsRememberedThroughEveryDecorator(t *testing.T) {
	h := host.NewIllumos(host.IllumosOptions{Root: t.TempDir()})
	traced := host.Trace(h, func(host.Event) {})
	decorated := host.Crash(host.ReadOnly(host.ForAction(traced, "a")), 0, host.CrashBefore)
	if got, known := host.Recall[int](decorated, memoKey{}); known {
		t.Errorf("knows %d before it was told", got)
	}
	host.Remember(decorated, memoKey{}, 7)
	for name, h := range map[string]host.Host{"the machine": h, "its trace": traced, "all": decorated} {
		if got, known := host.Recall[int](h, memoKey{}); !known || got != 7 {
			t.Errorf("%s: %d, %v", name, got, known)
		}
	}
	if _, known := host.Recall[int](host.NewIllumos(host.IllumosOptions{}), memoKey{}); known {
		t.Error("another machine knows it too")
	}
}

func TestAMemoryOfItsOwnIsForgottenWithItsHost(t *testing.T) {
	for name, below := range map[string]host.Host{"a host with a memory": host.NewIllumos(host.IllumosOptions{}), "one without": newFake()} {
		host.Remember(below, memoKey{}, "below")
		over := host.Remembering(below)
		host.Remember(host.ReadOnly(over), memoKey{}, 7)
		if got, known := host.Recall[int](host.ForAction(over, "a"), memoKey{}); !known || got != 7 {
			t.Errorf("%s: %d, %v", name, got, known)
		}
		if _, known := host.Recall[int](below, memoKey{}); known {
			t.Errorf("%s has learned of it", name)
		}
		_, below := host.Recall[string](below, memoKey{})
		if _, known := host.Recall[string](host.Remembering(over), memoKey{}); known != below {
			t.Errorf("%s: what is known below is known: %v", name, known)
		}
	}
}

func TestAHostWithoutAMemoryKnowsNothing(t *testing.T) {
	f := newFake()
	host.Remember(f, memoKey{}, 7)
	if _, known := host.Recall[int](f, memoKey{}); known {
		t.Error("it remembers")
	}
}
