package zfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Where these lines differ from the sled agent's, it is on purpose. One zfs get
// lists everything: zfs list shows no sources, and asking with -t would not
// name snapshots on releases that have no such option. Nothing is ever destroyed
// with -R or -f, with -r only the snapshots of one name, and one call sets one
// property.

// native are the properties that fill a Dataset.
func native() []string {
	return []string{
		"type", "guid", "mountpoint", "mounted", "origin", "used", "available", "quota", "reservation", "compression", "canmount",
	}
}

// Extended are the properties that fill the rest of a Dataset. A listing has
// them if they are asked for next to the user properties: they make it half as
// long again, and most who list do not look at them.
func Extended() []string { return append([]string{"refquota", "volsize", "zoned"}, encryption()...) }

// ofVolumes are those that fill what only a volume has.
func ofVolumes() []string { return []string{"volblocksize", "refreservation"} }

// encryption are the properties that older implementations lack.
func encryption() []string { return []string{"encryption", "keyformat", "keystatus", "encryptionroot"} }

// listCommand lists the datasets and all below them, snapshots too.
func listCommand(datasets, properties []string) host.Command {
	return get([]string{"-r"}, properties, datasets)
}

// topsCommand lists the datasets and what lies at most so many names below them.
func topsCommand(datasets []string, depth int, properties []string) host.Command {
	return get([]string{"-d", strconv.Itoa(depth)}, properties, datasets)
}

// markedCommand lists the user properties that the datasets, and all below them, have of
// their own.
func markedCommand(datasets, properties []string) host.Command {
	return get([]string{"-r", "-s", "local"}, properties, datasets)
}

// getCommand looks at one dataset.
func getCommand(dataset string, properties []string) host.Command {
	return get(nil, properties, []string{dataset})
}

// nearCommand looks at a dataset, its children and its snapshots.
func nearCommand(dataset string, properties []string) host.Command {
	return get([]string{"-d", "1"}, properties, []string{dataset})
}

func get(depth, properties, datasets []string) host.Command {
	args := append([]string{"get", "-Hp"}, depth...)
	args = append(args, "-o", "name,property,value,source", strings.Join(properties, ","))
	return host.Command{Program: "zfs", Args: append(args, datasets...), ReadOnly: true}
}

func createCommand(dataset string, properties []Property) host.Command {
	return withOptions("create", properties, dataset)
}

func snapshotCommand(name string, properties []Property) host.Command {
	return withOptions("snapshot", properties, name)
}

func snapshotAllCommand(s SnapshotAll) host.Command {
	return withOptions("snapshot", s.Properties, s.Names...)
}

func snapshotTreeCommand(name string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"snapshot", "-r", name}}
}

func rollbackCommand(snapshot string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"rollback", snapshot}}
}

func withOptions(subcommand string, properties []Property, names ...string) host.Command {
	return host.Command{Program: "zfs", Args: slices.Concat([]string{subcommand}, options(properties), names)}
}

// options are properties as a command that makes something takes them.
func options(properties []Property) (args []string) {
	for _, p := range properties {
		args = append(args, "-o", p.Name+"="+p.Value)
	}
	return args
}

func setCommand(dataset string, p Property) host.Command {
	return host.Command{Program: "zfs", Args: []string{"set", p.Name + "=" + p.Value, dataset}}
}

func inheritCommand(dataset, property string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"inherit", property, dataset}}
}

func mountCommand(dataset string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"mount", dataset}}
}

func unmountCommand(dataset string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"unmount", dataset}}
}

// loadKeyCommand names the key's file: the dataset's own keylocation may name a file
// of another configuration.
//
// Guess load-key-keeps-keylocation: `zfs load-key -L` takes the key from that file and leaves
// keylocation as it is.
// Check: that line, then `zfs get keylocation`
func loadKeyCommand(dataset string, k Key) host.Command {
	return host.Command{Program: "zfs", Args: []string{"load-key", "-L", k.Location(), dataset}}
}

func unloadKeyCommand(dataset string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"unload-key", dataset}}
}

func changeKeyCommand(dataset string, k Key, properties []Property) host.Command {
	all := append([]Property{{"keyformat", "raw"}, {"keylocation", k.Location()}}, properties...)
	return withOptions("change-key", all, dataset)
}

func destroyCommand(name string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"destroy", name}}
}

func destroySnapshotsCommand(name string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"destroy", "-r", name}}
}

// attributesCommand shows the system attributes of directories, in words.
func attributesCommand(directories []string) host.Command {
	return host.Command{Program: "ls", Args: append([]string{"-d/v"}, directories...), ReadOnly: true}
}

// fixCommand makes a directory immutable, and loosenCommand not (chmod(1)).
func fixCommand(directory string) host.Command {
	return host.Command{Program: "chmod", Args: []string{"S+ci", directory}}
}

func loosenCommand(directory string) host.Command {
	return host.Command{Program: "chmod", Args: []string{"S-ci", directory}}
}
