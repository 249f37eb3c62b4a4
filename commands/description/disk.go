package description

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// newDisk is how a disk is written that is made with the instance.
const newDisk = "image=NAME, size=N or both, and any of pool=P, block-size=N, thin, delete-with-instance"

// parseDisk reads a disk that exists, as record.ParseDisk does, or, if it begins with a size or an
// image, one that is made with the instance.
func parseDisk(text string) (record.Disk, error) {
	if !strings.HasPrefix(text, "size=") && !strings.HasPrefix(text, "image=") {
		return record.ParseDisk(text)
	}
	d := record.Disk{New: &record.NewDisk{}}
	for word := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch {
		case key == "image" && value != "" && d.New.Image == "":
			d.New.Image = value
		case key == "size" && d.New.Size == 0:
			d.New.Size, err = terminal.ParseSize(value)
		case key == "block-size" && d.New.Block == 0:
			d.New.Block, err = terminal.ParseSize(value)
		case key == "pool" && value != "" && d.New.Pool == "":
			d.New.Pool = value
		case word == "thin":
			d.New.Thin = true
		case word == "delete-with-instance":
			d.New.Follows = true
		default:
			return d, &record.InputError{Field: "disk", Value: text, Want: newDisk}
		}
		if err != nil || key == "size" && d.New.Size < record.LeastDisk {
			return d, &record.InputError{Field: "disk", Value: text, Want: "a size as 20G, 1M or more: " + word}
		}
	}
	return d, nil
}

// readKeys reads the files of keys that a document names.
func readKeys(streams *terminal.Streams, disks []record.CrucibleDisk, at func(string) string) ([]record.CrucibleDisk, error) {
	disks = slices.Clone(disks)
	for i, d := range disks {
		if d.KeyFile == "" {
			continue
		}
		data, err := cli.ReadDocument(streams, "key_file", at(d.KeyFile))
		if err != nil {
			return disks, err
		}
		disks[i].Key, disks[i].KeyFile = strings.TrimSpace(string(data)), ""
	}
	return disks, nil
}
