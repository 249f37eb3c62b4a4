package commands

import (
	"context"
	"strings"

	"github.com/sledctl/sledctl/agent/client"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/instance"
)

// Remote replaces how another sled's sledctl is run.
func (e *Env) Remote(run func(ctx context.Context, words []string, stdin []byte) (instance.Answer, error)) {
	e.remote = run
}

// Call replaces how agents are reached.
func (e *Env) Call(dial client.Dial) { e.call = dial }

// Input is what is read from standard input.
func (e *Env) Input(text []byte) { e.Streams.In.Reader = strings.NewReader(string(text)) }

// Draw replaces the source of random ids, so that a dry run and the run after
// it can be made to choose the same.
func (e *Env) Draw(draw func() string) { e.draw = draw }

// SimulatedConfigOf is what a fresh simulated sled of a mode is given.
func SimulatedConfigOf(mode world.Mode) string { return simConfig(mode) }
