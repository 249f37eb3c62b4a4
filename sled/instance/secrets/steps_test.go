package secrets

import (
	"io/fs"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

func TestSteps(t *testing.T) {
	const file = "/var/secrets/id.now"
	keep := keepSecrets{File: file, Name: "web1", data: []byte("secret")}
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			s := sim.New(sim.Options{}, hosttest.Files)
			t.Cleanup(s.Close)
			steptest.Does(t, s.Host(), steps...)
			return steptest.Sled{Host: s.Host(), State: func() any {
				data, err := host.ReadFile(s.Host().Files(), file)
				return []any{string(data), err == nil}
			}}
		}
	}
	steptest.Conform(t,
		steptest.Case{Step: keep, Sled: on(), Again: fs.ErrExist},
		steptest.Case{Step: Drop{Files: []string{file}}, Sled: on(keep)}, // what is gone is as it should be
	)
}
