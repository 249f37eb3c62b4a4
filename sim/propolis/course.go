package propolis

import (
	"fmt"
	"slices"
	"time"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// stage is a part of a migration, with what each side publishes in it
// (bin/propolis-server/src/lib/migrate/{source,destination}.rs).
type stage struct {
	name    string
	in, out []string
}

func stages() []stage {
	return []stage{
		{"Sync", []string{"Sync"}, []string{"Sync"}},
		{"RamPush", []string{"RamPush"}, []string{"RamPush"}},
		{"Pause", []string{"Pause"}, []string{"Pause", "Pause"}},
		{"RamPushDirty", []string{"RamPushDirty", "Pause"}, []string{"RamPushDirty", "Pause"}},
		{"Device", []string{"Device"}, []string{"Device"}},
		{"RamPull", []string{"RamPull"}, []string{"RamPush", "Pause", "RamPushDirty"}},
		{"Server", []string{"Server"}, []string{"Server"}},
		{"Finish", []string{"Finish"}, []string{"Finish"}},
	}
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
		publish(vm, m, "Migrating", "Error", m.End)
		publish(vm, nil, "Failed", "", m.End)
		publish(vm, nil, "Failed", "", m.End) // once more when it is torn down
		return
	}
	publish(vm, nil, "Running", "", m.End)
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
		publish(vm, nil, "Stopping", "", m.End)
		publish(vm, nil, "Stopped", "", m.End)
		publish(vm, nil, "Destroyed", "", m.End)
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

// replacement is a component that a target exchanges.
type replacement struct {
	kind string // as the request has it
	part component
}

// amended is the spec of the source as the target makes it
// (crates/propolis-api-types-versions, ReplacementComponent, and the target's
// preamble).
func amended(sent []byte, replacements map[string]replacement) (*instanceSpec, machine, error) {
	wire, err := speak(sent, version{Major: 1})
	if err != nil {
		return nil, machine{}, err
	}
	body := serve.JSON(wire.(map[string]any)["spec"])
	var spec *instanceSpec
	err = parse(body, func(d *decoder, v any) { spec = d.spec(v, ".spec", version{Major: 1}) })
	if err != nil {
		return nil, machine{}, err
	}
	kinds := map[string]string{"CrucibleStorageBackend": "a crucible backend", "VirtioNetworkBackend": "a viona backend"}
	for _, key := range sortedKeys(replacements) {
		r := replacements[key]
		had, there := spec.Components[key]
		switch {
		case r.kind == "MigrationFailureInjector":
			return nil, machine{}, fmt.Errorf("replacing migration failure injector %s is impossible because the feature is compiled out", key)
		case !there:
			return nil, machine{}, fmt.Errorf("replacement component %s not in source spec", key)
		case had.Type != r.part.Type:
			return nil, machine{}, fmt.Errorf("component %s is not %s in the source spec", key, kinds[r.kind])
		}
		spec.Components[key] = r.part
	}
	m, err := convert(spec)
	if err != nil {
		return nil, machine{}, fmt.Errorf("failed to parse preamble: %w", err)
	}
	return spec, m, nil
}
