package propolis

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// The guest of a simulated machine: it writes a boot log on its first serial
// port, then gives a login prompt that echoes what is typed. Two words are
// understood there, for what a real guest does by itself: poweroff, and write, to its
// volumes in a Crucible.

// guest is the machine's software, as far as it shows.
type guest struct {
	tx *world.Tx
	vm *world.VM
}

// boots writes the boot log, from the moment at which the vCPUs run.
func (g guest) boots(at time.Time) {
	g.vm.Console.Typed = nil
	g.vm.Console.Write(g.tx, at, []byte(g.bootLog()+g.prompt()))
}

// bootLog depends on nothing but the machine and its disks: the same one writes the
// same bytes each time.
func (g guest) bootLog() string {
	spec := g.spec()
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("BdsDxe: starting Boot0001 of the simulated firmware")
	say("[    0.000000] simulated guest %s", g.name())
	say("[    0.000000] DMI: Oxide OxVM, BIOS v0.8")
	say("[    0.010000] Memory: %d MiB available", spec.Board.Memory)
	say("[    0.020000] smp: Brought up 1 node, %d CPUs", spec.Board.CPUs)
	for i, key := range sortedKeys(spec.Components) {
		c := spec.Components[key]
		if at := c.contents().Path; at != (pciPath{}) {
			say("[    0.%02d0000] pci %04d:%02x:%02x.%x: %s %s", 30+i, 0, at.Bus, at.Device, at.Function, strings.ReplaceAll(c.Type, "_", " "), key)
		}
	}
	lines = append(lines, g.found(spec)...)
	say("[    1.000000] console: ttyS0, 115200n8")
	if t, is := readTold(spec); is {
		lines = append(lines, t.log()...)
	}
	say("")
	return strings.Join(lines, "\r\n") + "\r\n"
}

func (g guest) name() string {
	var p struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(g.vm.Properties, &p) // our own
	return cmp.Or(p.Name, "guest")
}

func (g guest) spec() (s instanceSpec) {
	_ = json.Unmarshal(g.vm.Spec, &s) // our own
	return s
}

// prompt begins with the hostname: what cloud-init was told, or how its maker called it.
func (g guest) prompt() string {
	name := g.name()
	if t, is := readTold(g.spec()); is {
		name = cmp.Or(t.hostname, name)
	}
	return name + " login: "
}

// runs says whether the guest's vCPUs do.
func (g guest) runs() bool { return world.At(g.vm.Timeline, g.tx.Now).State == "Running" }

// typed takes what a client sends to the serial port. What comes while the
// guest does not run is lost.
func (g guest) typed(input []byte) {
	for _, b := range input {
		if !g.runs() {
			return
		}
		g.key(b)
	}
}

func (g guest) key(b byte) {
	c := &g.vm.Console
	say := func(text string) { c.Write(g.tx, g.tx.Now, []byte(text)) }
	switch {
	case b == '\r' || b == '\n':
		word := string(bytes.TrimSpace(c.Typed))
		c.Typed = nil
		g.command(word, say)
	case b >= ' ' && b != 0x7f:
		c.Typed = append(slices.Clip(c.Typed), b)
		c.Write(g.tx, g.tx.Now, []byte{b})
	default:
		say("[not simulated: this key]")
	}
}

// command is a line that was typed. A guest that powers itself off is to the
// server what Stop is.
func (g guest) command(word string, say func(string)) {
	switch word {
	case "poweroff":
		say("\r\nThe system is going down for power-off.\r\n")
		_ = queue(g).stop() // which nothing denies
	case "write":
		if err := Write(g.tx, g.vm); err != nil {
			say("\r\nwrite: I/O error\r\n" + g.prompt())
			return
		}
		say("\r\nwritten\r\n" + g.prompt())
	case "reboot":
		say("\r\nnot simulated: a guest that resets itself\r\n" + g.prompt())
	default:
		say("\r\n" + g.prompt())
	}
}

// nmi is a non-maskable interrupt: it is printed, and has no other effect.
func (g guest) nmi() {
	if g.runs() {
		g.vm.Console.Write(g.tx, g.tx.Now, []byte("\r\nUhhuh. NMI received for unknown reason 20 on CPU 0.\r\nDazed and confused, but trying to continue\r\n"))
	}
}
