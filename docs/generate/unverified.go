package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// introduction opens the page of what is not verified.
//
//go:embed unverified.txt
var introduction string

// collected opens the page.
const collected = "<!-- make docs writes this page from comments of the code -->\n"

// areas are the sections of the page: the folders whose guesses each has. A folder that is
// named more precisely wins.
func areas() []area {
	return []area{
		{"Running commands: `host`", []string{"host", "engine/operation", "engine/plan"}},
		{"The ledger", []string{"engine/ledger"}},
		{"Doctor: is the host able to run VMs", []string{"sled/doctor", "host/privilege", "illumos/system", "illumos/reservoir", "illumos/ips", "sled/memory"}},
		{"Names and places", []string{"illumos/naming", "engine/inventory"}},
		{"Zones", []string{"zone"}},
		{"VNICs", []string{"vnic", "sled/network"}},
		{"OPTE", []string{"illumos/opte"}},
		{"Addresses and routes: `ipadm`", []string{"illumos/ipadm"}},
		{"ZFS", []string{"zfs"}},
		{"Images and volumes", []string{"image", "sled/image", "peer/web", "sled/volume"}},
		{"Disks", []string{"illumos/devtree", "illumos/disk", "sled/storage", "sled/localdisk"}},
		{"Keys", []string{"illumos/key"}},
		{"Counters of the kernel: `kstat`", []string{"illumos/kstat"}},
		{"SMF", []string{"illumos/smf"}},
		{"Propolis", []string{"propolis"}},
		{"Instances", []string{"sled/instance", "sled/base"}},
		{"The agent and the control plane", []string{"agent", "peer/nexus", "sled/hardware"}},
		{"Reap, bundles and logs", []string{"sled/reap", "engine/bundle"}},
		{"NIC records", []string{"sled/nicsync", "peer/napi"}},
		{"BMCs of a fleet's sleds", []string{"fleet"}},
		{"The simulated sled", []string{"sim"}},
	}
}

type area struct {
	title   string
	folders []string
}

// areaOf is the index of the area that a folder is in, -1: none has it.
func areaOf(all []area, folder string) int {
	for ; folder != "."; folder = path.Dir(folder) {
		for i, a := range all {
			if slices.Contains(a.folders, folder) {
				return i
			}
		}
	}
	return -1
}

// unverifiedPage renders the guesses by area and id. Errors: what is wrong with any guess,
// with file and line.
func unverifiedPage(files map[string][]byte, introduction string) ([]byte, error) {
	all, faults := guesses(files)
	areas := areas()
	rows := make([][]guess, len(areas))
	for _, g := range all {
		i := areaOf(areas, path.Dir(g.file))
		if i < 0 {
			faults = append(faults, fmt.Sprintf("%s:%d: guess %s is in no area of docs/generate/unverified.go", g.file, g.line, g.id))
			continue
		}
		rows[i] = append(rows[i], g)
	}
	if faults != nil {
		return nil, fmt.Errorf("%d faults:\n%s", len(faults), strings.Join(faults, "\n"))
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n%s\n%s\n", collected, strings.TrimRight(introduction, "\n"), countLine(all))
	for i, a := range areas {
		if rows[i] == nil {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n| id | assumed | state | to check |\n|---|---|---|---|\n", a.title)
		slices.SortFunc(rows[i], func(a, b guess) int { return strings.Compare(a.id, b.id) })
		for _, g := range rows[i] {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", g.id, cell(strings.TrimSuffix(g.assumed, ".")), cell(g.state), cell(g.check))
		}
	}
	return out.Bytes(), nil
}

// countLine counts guesses by state. make test prints it.
func countLine(all []guess) string {
	by := map[string]int{}
	for _, g := range all {
		by[g.kind()]++
	}
	var parts []string
	for _, s := range states {
		parts = append(parts, fmt.Sprintf("%d %s", by[s.kind], s.kind))
	}
	return fmt.Sprintf("\nGuesses: %d, of which %s.", len(all), strings.Join(parts, ", "))
}

// sources reads the Go files below a directory, by their names from there. What is below
// testdata, or is made, is left out.
func sources(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		from, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		base := filepath.Base(from)
		switch {
		case d.IsDir() && from != "." && (strings.HasPrefix(base, ".") || base == "testdata" || from == "bin" || from == "dist"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		files[filepath.ToSlash(from)], err = os.ReadFile(name)
		return err
	})
	return files, err
}
