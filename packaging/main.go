// Packaging writes what installs sledctl on a sled: a tarball with an installer,
// another from which pkgsend(1) makes a package of IPS, what the program is made of
// (CycloneDX), and the checksums of all that. The same commit gives the same bytes: the time is that
// of the commit, and nothing of the machine or of the folder is in them.
//
// usage: go run ./packaging -version VERSION -date SECONDS [-out DIR]
//
// It runs in the root of the source, as make packages does.
package main

import (
	"bytes"
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	version := flag.String("version", "", "`version` of the program")
	date := flag.Int64("date", 0, "time of the commit, in `seconds` since 1970: SOURCE_DATE_EPOCH")
	out := flag.String("out", "dist", "`directory` to write to")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: packaging -version VERSION -date SECONDS [-out DIR]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *version == "" || *date <= 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(".", *version, time.Unix(*date, 0).UTC(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// run builds the program from the source in a directory, and writes the packages of it.
func run(source, version string, at time.Time, out string) error {
	program, err := build(source, version)
	if err != nil {
		return err
	}
	pages, err := manual(source, at)
	if err != nil {
		return err
	}
	scripts, err := completions(source)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return err
	}
	manifests, err := readAll(filepath.Join(source, "docs", "smf"))
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	components, err := billOfMaterials(info, version, at)
	if err != nil {
		return err
	}
	all, err := outputs(inputs{version, at, program, license, components, pages, scripts, manifests})
	if err != nil {
		return err
	}
	return write(out, all)
}

// write puts files below a directory.
func write(dir string, all []file) error {
	for _, f := range all {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, f.mode); err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}
