package zfs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Encryption, as far as its refusals: usr/src/lib/libzfs/common/libzfs_crypto.c.
// Nothing is encrypted; of a key only its SHA-256 is kept.

// KeyOptions say where key material comes from.
type KeyOptions struct {
	Location string // -L; empty: the property keylocation
	NoOp     bool   // -n: only see whether the key is right
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
		if v, set := d.Local[p.Name]; set {
			return v, SourceLocal, true
		}
		return p.Default, SourceDefault, true
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
func (c *checker) encrypt(parent, d *world.Dataset, o KeyOptions) error {
	above := encryptionRoot(c.tx, parent)
	cipher := d.Local["encryption"]
	format, location := d.Local["keyformat"], d.Local["keylocation"]
	if cipher == "off" || cipher == "" && above == nil {
		if location != "" && location != "none" || format != "" {
			return c.refuse("Encryption must be turned on to set encryption properties.")
		}
		return nil
	}
	switch {
	case format == "" && (location != "" || above == nil):
		return c.refuse("Keyformat required for new encryption root.")
	case format == "" && !above.KeyReady:
		return c.refuse("encryption root's key is not loaded or provided")
	case format == "":
		return nil
	case cipher == "" || cipher == "on":
		return world.NotSimulated("zfs: an encryption root whose cipher is not named")
	}
	d.Local["keylocation"] = cmp.Or(location, "prompt")
	key, err := keyMaterial(c.tx, format, d.Local["keylocation"], o)
	if err != nil {
		return c.refuse("%s", err.Error())
	}
	d.Key, d.KeyReady = key, true
	return nil
}

// keyMaterial reads a key and gives its digest. The error is the description
// only (get_key_material, validate_key).
func keyMaterial(tx *world.Tx, format, location string, o KeyOptions) (string, error) {
	material := o.Stdin
	if file, ok := strings.CutPrefix(location, "file://"); ok && file != "/dev/stdin" {
		data, err := host.ReadFile(tx.Files, file)
		if err != nil {
			return "", refuse("Failed to open key material file")
		}
		material = data
	}
	if len(material) == 0 {
		return "", refuse("encryption failure")
	}
	if why := checkKey(format, material); why != "" {
		return "", refuse("%s", why)
	}
	sum := sha256.Sum256(material)
	return hex.EncodeToString(sum[:]), nil
}

// checkKey says what is wrong with a raw key, or "". Other formats are for people.
func checkKey(format string, key []byte) string {
	switch {
	case format != "raw":
		return "not simulated: keyformat=" + format
	case len(key) < 32:
		return "Raw key too short (expected 32)."
	case len(key) > 32:
		return "Raw key too long (expected 32)."
	}
	return ""
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
	case d.KeyReady && !o.NoOp:
		return c.refuse("Key already loaded for '%s'.", name)
	}
	key, err := keyMaterial(tx, d.Local["keyformat"], cmp.Or(o.Location, d.Local["keylocation"]), o)
	switch {
	case err != nil:
		return c.refuse("%s", err.Error())
	case key != d.Key:
		return c.refuse("Incorrect key provided for '%s'.", name)
	}
	d.KeyReady = d.KeyReady || !o.NoOp
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
	for _, o := range mountsBelow(tx, "/") {
		if encryptionRoot(tx, o) == d {
			return c.refuse("'%s' is busy.", name)
		}
	}
	d.KeyReady = false
	return nil
}

// ChangeKey is zfs change-key: a new key for an encryption root
// (zfs_crypto_rewrap).
func ChangeKey(tx *world.Tx, name string, props map[string]string, inherit bool, o KeyOptions) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	c := &checker{tx: tx, action: "Key change error", types: Kind(d), target: d, keysToo: true}
	root := encryptionRoot(tx, d)
	switch {
	case root == nil:
		return c.refuse("Dataset not encrypted.")
	case inherit || root != d:
		return world.NotSimulated("zfs change-key of what is no encryption root, or with -i")
	}
	checked, err := c.check(props)
	if err != nil {
		return err
	}
	return c.newKey(d, checked, o)
}

func (c *checker) newKey(d *world.Dataset, checked settings, o KeyOptions) error {
	format := cmp.Or(checked["keyformat"], d.Local["keyformat"])
	location := cmp.Or(checked["keylocation"], d.Local["keylocation"], "prompt")
	key, err := keyMaterial(c.tx, format, location, o)
	switch {
	case err != nil:
		return c.refuse("%s", err.Error())
	case !d.KeyReady:
		return c.refuse("Key must be loaded.")
	}
	checked["keyformat"], checked["keylocation"] = format, location
	apply(d, checked)
	d.Key, d.KeyReady = key, true
	return nil
}

func apply(d *world.Dataset, s settings) {
	if d.Local == nil {
		d.Local = map[string]string{}
	}
	maps.Copy(d.Local, s)
}
