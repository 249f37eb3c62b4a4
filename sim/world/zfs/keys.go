package zfs

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Encryption, as far as its refusals: usr/src/lib/libzfs/common/libzfs_crypto.c.
// Nothing is encrypted; of a key only its SHA-256 is kept.

// KeyOptions say where key material comes from.
type KeyOptions struct {
	Location string // -L; empty: the property keylocation
	Stdin    []byte
}

// encryptionRoot is the dataset whose key d is encrypted with, or nil. A clone
// has that of its origin.
func encryptionRoot(tx *world.Tx, d *world.Dataset) *world.Dataset {
	for hops := 0; d != nil && hops < 2*maxDatasetDepth; hops++ {
		switch {
		case d.Local["keyformat"] != "" && d.Local["keyformat"] != "none":
			return d
		case d.Origin != "":
			d = tx.State.Datasets[parentName(d.Origin)]
		default:
			d = tx.State.Datasets[parentName(d.Name)]
		}
	}
	return nil
}

// locked says whether d is encrypted with a key that is not loaded.
func locked(tx *world.Tx, d *world.Dataset) bool {
	root := encryptionRoot(tx, d)
	return root != nil && !root.KeyReady
}

func keyStatus(tx *world.Tx, d *world.Dataset) (string, bool) {
	switch root := encryptionRoot(tx, d); {
	case root == nil:
		return "", false
	case root.KeyReady:
		return "available", true
	}
	return "unavailable", true
}

// cryptSetting is the value of one of the properties of encryption.
func cryptSetting(tx *world.Tx, d *world.Dataset, p *DatasetProperty) (value, source string, ok bool) {
	if p.Name == "keylocation" {
		return own(d, p)
	}
	root := encryptionRoot(tx, d)
	if root == nil {
		return p.Default, SourceDefault, true
	}
	from := root
	if _, own := d.Local[p.Name]; own {
		from = d
	}
	return cmp.Or(from.Local[p.Name], p.Default), SourceNone, true
}

// encrypt settles the encryption of a dataset that is to be made (zfs_crypto_create).
//
// Guess encryption-on-is-ccm: `encryption=on` means aes-256-ccm.
// Check: `zfs get encryption`
// State: settled by usr/src/uts/common/fs/zfs/sys/zio.h:107
func (c *checker) encrypt(parent, d *world.Dataset, o KeyOptions) error {
	above := encryptionRoot(c.tx, parent)
	cipher, format, location := d.Local["encryption"], d.Local["keyformat"], d.Local["keylocation"]
	switch {
	case cipher+format+location == "" && above == nil:
		return nil
	case cipher+format+location == "" && !above.KeyReady:
		return c.refuse("encryption root's key is not loaded or provided")
	case cipher+format+location == "":
		return nil
	case format == "" || cipher == "" || cipher == "on" || cipher == "off":
		return world.NotSimulated("zfs: encryption without a cipher and a format of its key")
	}
	d.Local["keylocation"] = cmp.Or(location, "prompt")
	key, err := c.keyMaterial(format, d.Local["keylocation"], o)
	if err != nil {
		return err
	}
	d.Key, d.KeyReady = key, true
	return nil
}

// keyMaterial reads a raw key and gives its digest (get_key_material, validate_key).
// Other formats are for people.
func (c *checker) keyMaterial(format, location string, o KeyOptions) (string, error) {
	material := o.Stdin
	if file, ok := strings.CutPrefix(location, "file://"); ok && file != "/dev/stdin" {
		data, err := host.ReadFile(c.tx.Files, file)
		if err != nil {
			return "", c.refuse("Failed to open key material file")
		}
		material = data
	}
	switch {
	case format != "raw" || len(material) == 0:
		return "", world.NotSimulated("zfs: a key that is empty or of the format %s", format)
	case len(material) < 32:
		return "", c.refuse("Raw key too short (expected 32).")
	case len(material) > 32:
		return "", c.refuse("Raw key too long (expected 32).")
	}
	return fmt.Sprintf("%x", sha256.Sum256(material)), nil
}

// LoadKey is zfs load-key of one encryption root.
func LoadKey(tx *world.Tx, name string, o KeyOptions) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "Key load error"}
	switch root := encryptionRoot(tx, d); {
	case root == nil:
		return c.refuse("'%s' is not encrypted.", name)
	case root != d:
		return c.refuse("Keys must be loaded for encryption root of '%s' (%s).", name, root.Name)
	case d.KeyReady:
		return c.refuse("Key already loaded for '%s'.", name)
	}
	key, err := c.keyMaterial(d.Local["keyformat"], cmp.Or(o.Location, d.Local["keylocation"]), o)
	switch {
	case err != nil:
		return err
	case key != d.Key:
		return c.refuse("Incorrect key provided for '%s'.", name)
	}
	tx.TouchDataset(d.Name)
	d.KeyReady = true
	return nil
}

// UnloadKey is zfs unload-key of one encryption root.
func UnloadKey(tx *world.Tx, name string) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "Key unload error"}
	switch root := encryptionRoot(tx, d); {
	case root == nil:
		return c.refuse("'%s' is not encrypted.", name)
	case root != d:
		return c.refuse("Keys must be unloaded for encryption root of '%s' (%s).", name, root.Name)
	case !d.KeyReady:
		return c.refuse("Key already unloaded for '%s'.", name)
	}
	if slices.ContainsFunc(mountsBelow(tx, "/"), func(o *world.Dataset) bool { return encryptionRoot(tx, o) == d }) {
		return c.refuse("'%s' is busy.", name)
	}
	tx.TouchDataset(d.Name)
	d.KeyReady = false
	return nil
}

// ChangeKey is zfs change-key: a new key for an encryption root
// (zfs_crypto_rewrap).
func ChangeKey(tx *world.Tx, name string, props map[string]string, o KeyOptions) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "Key change error", types: Kind(d), target: d, keysToo: true}
	switch root := encryptionRoot(tx, d); {
	case root == nil:
		return c.refuse("Dataset not encrypted.")
	case root != d:
		return world.NotSimulated("zfs change-key of what is no encryption root")
	}
	checked, err := c.check(props)
	if err != nil {
		return err
	}
	format := cmp.Or(checked["keyformat"], d.Local["keyformat"])
	location := cmp.Or(checked["keylocation"], d.Local["keylocation"], "prompt")
	key, err := c.keyMaterial(format, location, o)
	switch {
	case err != nil:
		return err
	case !d.KeyReady:
		return c.refuse("Key must be loaded.")
	}
	checked["keyformat"], checked["keylocation"] = format, location
	tx.TouchDataset(d.Name)
	apply(d, checked)
	d.Key = key
	return nil
}

func apply(d *world.Dataset, s settings) {
	if d.Local == nil {
		d.Local = map[string]string{}
	}
	maps.Copy(d.Local, s)
}
