package propolis

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
)

// stage is a part of a migration, with what each side publishes in it
// (bin/propolis-server/src/lib/migrate/{source,destination}.rs).
type stage struct {
	name    string
	in, out []string
}

func stages() (all []stage) {
	for _, s := range []string{
		"Sync|Sync|Sync", "RamPush|RamPush|RamPush", "Pause|Pause|Pause Pause", "RamPushDirty|RamPushDirty Pause|RamPushDirty Pause",
		"Device|Device|Device", "RamPull|RamPull|RamPush Pause RamPushDirty", "Server|Server|Server", "Finish|Finish|Finish",
	} {
		f := strings.Split(s, "|")
		all = append(all, stage{f[0], strings.Fields(f[1]), strings.Fields(f[2])})
	}
	return all
}

// course is when each stage behind Sync begins, and last when the migration
// ends; and whether it fails, at the end of the stage before.
func course(tx *world.Tx, at time.Time, all ...map[string]trouble) (course []world.Timepoint, fails bool) {
	for _, s := range stages()[1:] {
		course = append(course, world.Timepoint{State: s.name, From: at})
		at = at.Add(tx.Latency(StepMigrate + s.name))
		for _, side := range all {
			at, fails = at.Add(side[s.name].slower), fails || side[s.name].fails != ""
		}
		if fails {
			break
		}
	}
	return append(course, world.Timepoint{State: "end", From: at}), fails
}

// playIn writes the course into the target's future.
func playIn(vm *world.VM) {
	m := vm.In
	play(vm, m, func(s stage) []string { return s.in })
	if m.Fails {
		failIn(vm, m.End)
		return
	}
	publish(vm, nil, "Running", "", m.End)
}

// failIn is the target of a migration that failed.
func failIn(vm *world.VM, at time.Time) {
	publish(vm, vm.In, "Migrating", "Error", at)
	publish(vm, nil, "Failed", "", at)
	publish(vm, nil, "Failed", "", at) // once more when it is torn down
}

// playOut writes the course into the source's future.
func playOut(vm *world.VM) {
	m := vm.Out
	play(vm, m, func(s stage) []string { return s.out })
	if m.Fails {
		goOn(vm)
		return
	}
	publish(vm, nil, "Stopping", "", m.End)
	publish(vm, nil, "Destroyed", "", m.End)
	vm.Console.Cut(m.End)
	vm.Moved = &world.Moved{Destination: m.Listen, From: m.From}
}

// goOn is the source after a migration that failed.
func goOn(vm *world.VM) {
	m := vm.Out
	publish(vm, m, "Migrating", "Error", m.End)
	publish(vm, nil, "Running", "", m.End)
	if m.Stop {
		for _, state := range []string{"Stopping", "Stopped", "Destroyed"} {
			publish(vm, nil, state, "", m.End)
		}
		vm.Console.Cut(m.End)
	}
}

func play(vm *world.VM, m *world.Migration, published func(stage) []string) {
	for _, point := range m.Stages {
		m.End = point.From
		i := slices.IndexFunc(stages(), func(s stage) bool { return s.name == point.State })
		if i < 0 {
			continue // the end
		}
		for _, phase := range published(stages()[i]) {
			publish(vm, m, "Migrating", phase, point.From)
		}
	}
}

// amended is the spec of the source as the target makes it
// (crates/propolis-api-types-versions, ReplacementComponent, and the target's
// preamble).
//
// Guess words-for-a-replacement-of-nothing: how a target refuses a replacement of what the source
// does not have.
// Check: a migration whose target gets such a replacement
//
// Guess source-sends-the-oldest-form: a source sends the spec of its VM in the oldest form that can
// express it, so that a target of an older version takes it unless a disk has no write cache; how
// the target refuses that.
// Check: `sledctl instance migrate` between servers of versions 5 and 6, and the target's log
func amended(newest version, sent []byte, replacements map[string]replacement) (*instanceSpec, machine, error) {
	spec := &instanceSpec{}
	if err := json.Unmarshal(sent, spec); err != nil {
		return nil, machine{}, err
	}
	spec.leaveOut(version{Major: 1})
	if newest.Before(6) && slices.ContainsFunc(slices.Collect(maps.Values(spec.Components)), component.cacheless) {
		return nil, machine{}, errors.New("failed to parse preamble: unexpected variant `V6`")
	}
	kinds := map[string]string{"CrucibleStorageBackend": "crucible_storage_backend", "VirtioNetworkBackend": "virtio_network_backend"}
	for _, key := range sortedKeys(replacements) {
		r := replacements[key]
		if had, there := spec.Components[key]; !there || had.Type != kinds[r.Kind] {
			return nil, machine{}, fmt.Errorf("the source spec has no %s %s", r.Kind, key)
		}
		spec.Components[key] = component{kinds[r.Kind], r.Body}
	}
	m, err := convert(spec)
	return spec, m, err
}
