package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/pelletier/go-toml/v2"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// document is an instance as it is written in a file. docs/instance.md
// describes it.
type document struct {
	ID      string          `json:"id" toml:"id"`
	Name    string          `json:"name" toml:"name"`
	VM      string          `json:"propolis_id" toml:"propolis_id"`
	CPUs    *int            `json:"cpus" toml:"cpus"`
	CPUCap  any             `json:"cpu_cap" toml:"cpu_cap"` // 1.5, a number of processors
	Memory  any             `json:"memory" toml:"memory"`   // "4G", or a number of bytes
	Disks   []Disk          `json:"disks" toml:"disks"`
	Volumes []Crucible      `json:"crucible" toml:"crucible"`
	NICs    []record.NIC    `json:"nics" toml:"nics"`
	Address *record.Address `json:"address" toml:"address"`
	Pool    *string         `json:"pool" toml:"pool"`
	Order   any             `json:"start_order" toml:"start_order"` // 10, or "none"
	Init    *CloudInit      `json:"cloud_init" toml:"cloud_init"`
	Spec    machine         `json:"spec" toml:"spec"`
	Machine *Machine        `json:"machine" toml:"-"` // in one that is sent
}

// Machine is the whole machine in a document that is sent: as the text that a file
// has elsewhere, so that its line numbers hold there.
type Machine struct {
	File string `json:"file"` // what that file is called there, for messages
	Text string `json:"text"` // a spec of Propolis in JSON, or a config in TOML
}

// machine is the whole machine: in a file, or itself. In TOML it is a text then, which
// begins as no name of a file does.
type machine struct {
	file string
	text []byte
}

// UnmarshalText reads either from a text.
func (m *machine) UnmarshalText(text []byte) error {
	if bytes.HasPrefix(text, []byte("{")) {
		m.text = bytes.Clone(text)
		return nil
	}
	m.file = string(text)
	return nil
}

// UnmarshalJSON reads either.
func (m *machine) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		m.text = bytes.Clone(data)
		return nil
	}
	return json.Unmarshal(data, &m.file)
}

// The keys of a document and of its tables.
func documentKeys() map[string][]string {
	return map[string][]string{
		"":         {"id", "name", "propolis_id", "cpus", "cpu_cap", "memory", "disks", "crucible", "nics", "address", "pool", "start_order", "cloud_init", "spec"},
		"disks":    {"path", "readonly", "image", "size", "block_size", "pool", "thin", "delete_with_instance"},
		"crucible": {"id", "targets", "block_size", "blocks_per_extent", "extents", "readonly", "key", "key_file", "above"},
		"nics":     {"over", "mac", "vlan", "allow_ip", "max_bw", "opte", "vni", "ip", "subnet", "gateway", "rules", "routes", "snat", "ephemeral_ip", "floating_ips"},

		"cloud_init": {"hostname", "ssh_keys", "user_data", "user_data_file", "network_config", "network_config_file"},
	}
}

// sentKeys are those of a document that is sent.
func sentKeys() map[string][]string {
	keys := documentKeys()
	keys[""], keys["machine"] = append(keys[""], "machine"), []string{"file", "text"}
	return keys
}

// DocumentError is a document that cannot be read, with the place.
type DocumentError struct {
	Line    int // from 1; 0 if it cannot be determined
	Key     string
	Message string
	// Known are the keys that could stand where an unknown one stands.
	Known []string
}

// Error names line and key.
func (e *DocumentError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Key != "" {
		fmt.Fprintf(&b, "key %q: ", e.Key)
	}
	return b.String() + e.Message
}

func (*DocumentError) Kind() fault.Kind { return fault.Usage }

// ParseDocument reads an instance document: JSON if it opens with '{', else
// TOML. Unknown keys are errors. parseSize reads "4G".
func ParseDocument(data []byte, parseSize func(string) (uint64, error)) (instance.Wanted, error) {
	var d document
	var err error
	if isJSON(data) {
		err = decodeJSON(data, &d, documentKeys())
	} else {
		err = decodeTOML(data, &d)
	}
	if err != nil {
		return instance.Wanted{}, err
	}
	return d.read(data, parseSize)
}

// ParseSent reads an instance document that was sent, in JSON, whose files lie
// elsewhere: in the place of the name of a spec it has the spec itself, under spec,
// or the text of the file, under machine.
func ParseSent(data []byte, parseSize func(string) (uint64, error)) (instance.Wanted, error) {
	var d document
	if err := decodeJSON(data, &d, sentKeys()); err != nil {
		return instance.Wanted{}, err
	}
	w, err := d.read(data, parseSize)
	switch {
	case err != nil:
		return instance.Wanted{}, err
	case w.CloudInitFiles != record.CloudInitFiles{}:
		return instance.Wanted{}, &DocumentError{
			Line: lineOf(data, "cloud_init", -1), Key: "cloud_init",
			Message: "want user_data and network_config themselves: a file is where the document was written",
		}
	case slices.ContainsFunc(w.Crucible, func(d record.CrucibleDisk) bool { return d.KeyFile != "" }):
		return instance.Wanted{}, &DocumentError{
			Line: lineOf(data, "crucible", -1), Key: "crucible",
			Message: "want key itself: key_file is where the document was written",
		}
	case w.MachineFile != "":
		return instance.Wanted{}, &DocumentError{
			Line: lineOf(data, "spec", -1), Key: "spec",
			Message: "want the spec itself: a file is where the document was written",
		}
	case d.Machine != nil && w.MachineText != nil:
		return instance.Wanted{}, &DocumentError{Line: lineOf(data, "machine", -1), Key: "machine", Message: "want none with a spec"}
	case d.Machine != nil:
		w.MachineFile, w.MachineText = d.Machine.File, []byte(d.Machine.Text)
	}
	return w, nil
}

func (d document) read(data []byte, parseSize func(string) (uint64, error)) (instance.Wanted, error) {
	w, err := d.wanted(parseSize)
	if place, ok := errors.AsType[*valueError](err); ok {
		return instance.Wanted{}, &DocumentError{Line: lineOf(data, place.key, place.row), Key: place.key, Message: place.err.Error()}
	}
	return w, err
}

// valueError is a value that the document may not have: of a key, or in a row of a
// table; -1: there are none.
type valueError struct {
	key string
	row int
	err error
}

// Error gives the reason.
func (e *valueError) Error() string { return e.err.Error() }

func (d document) wanted(parseSize func(string) (uint64, error)) (instance.Wanted, error) {
	w := instance.Wanted{
		Ref: d.Name, CPUs: d.CPUs, Address: d.Address, Pool: d.Pool, NICs: d.NICs,
		MachineFile: d.Spec.file, MachineText: d.Spec.text,
	}
	if d.ID != "" {
		id, err := uuid.Parse(d.ID)
		if err != nil {
			return instance.Wanted{}, &valueError{"id", -1, fmt.Errorf("%q is not a UUID", d.ID)}
		}
		w.Ref, w.Name = id.String(), d.Name
	}
	if d.VM != "" {
		id, err := uuid.Parse(d.VM)
		if err != nil {
			return instance.Wanted{}, &valueError{"propolis_id", -1, fmt.Errorf("%q is not a UUID", d.VM)}
		}
		w.PropolisID = id.String()
	}
	memory, err := d.memory(parseSize)
	if err != nil {
		return instance.Wanted{}, &valueError{"memory", -1, err}
	}
	w.Memory = memory
	if w.CPUCap, err = d.cpuCap(); err != nil {
		return instance.Wanted{}, &valueError{"cpu_cap", -1, err}
	}
	if w.StartOrder, err = d.startOrder(); err != nil {
		return instance.Wanted{}, &valueError{"start_order", -1, err}
	}
	if w.CloudInit, w.CloudInitFiles, err = d.Init.read(); err != nil {
		return instance.Wanted{}, &valueError{"cloud_init", -1, err}
	}
	if d.Disks != nil {
		w.Disks = []record.Disk{} // none, where it has none
	}
	for i, disk := range d.Disks {
		is, err := disk.read(parseSize)
		if err != nil {
			return instance.Wanted{}, &valueError{"disks", i, err}
		}
		w.Disks = append(w.Disks, is)
	}
	if d.Volumes != nil {
		w.Crucible = []record.CrucibleDisk{}
	}
	for i, volume := range d.Volumes {
		is, err := volume.read(parseSize)
		if err != nil {
			return instance.Wanted{}, &valueError{"crucible", i, err}
		}
		w.Crucible = append(w.Crucible, is)
	}
	for i := range w.NICs {
		if w.NICs[i], err = w.NICs[i].Normal(); err != nil {
			return instance.Wanted{}, &valueError{"nics", i, err}
		}
	}
	return w, nil
}

func (d document) memory(parseSize func(string) (uint64, error)) (*uint64, error) {
	if d.Memory == nil {
		return nil, nil
	}
	n, err := readSize(d.Memory, parseSize)
	return &n, err
}

func (d document) cpuCap() (*record.CPUCap, error) {
	if d.CPUCap == nil {
		return nil, nil
	}
	text := fmt.Sprint(d.CPUCap)
	if f, float := d.CPUCap.(float64); float { // Sprint may give it an exponent
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	if _, quoted := d.CPUCap.(string); quoted {
		return nil, fmt.Errorf("%q: want a number of processors without quotes, e.g. 1.5", text)
	}
	c, err := record.ParseCPUCap(text)
	return &c, err
}

func (d document) startOrder() (*record.StartOrder, error) {
	if d.Order == nil {
		return nil, nil
	}
	text := fmt.Sprint(d.Order)
	if f, float := d.Order.(float64); float { // 1.0 is none, though Sprint gives 1
		text = strconv.FormatFloat(f, 'f', 1, 64)
	}
	o, err := record.ParseStartOrder(text)
	if _, quoted := d.Order.(string); quoted && (err != nil || o != 0) {
		return nil, fmt.Errorf("%q: want a number from 0 to %d without quotes, or \"none\"", text, record.MaxStartOrder)
	}
	return &o, err
}

func decodeTOML(data []byte, d *document) error {
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(d)
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
		first := strict.Errors[0]
		line, _ := first.Position()
		return unknownKey(documentKeys(), line, first.Key())
	}
	if broken, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := broken.Position()
		return &DocumentError{Line: line, Key: strings.Join(broken.Key(), "."), Message: strings.TrimPrefix(broken.Error(), "toml: ")}
	}
	if err != nil {
		return err
	}
	return checkCase(data)
}

// checkCase refuses keys that differ from ours in case: go-toml takes CPUs for
// cpus, and a document would mean two things in its two forms.
func checkCase(data []byte) error {
	var tables map[string]any
	if err := toml.Unmarshal(data, &tables); err != nil {
		return err
	}
	check := func(table string, keys map[string]any) error {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !slices.Contains(documentKeys()[table], key) {
				path := strings.Trim(table+"."+key, ".")
				return unknownKey(documentKeys(), lineAt(data, int64(bytes.Index(data, []byte(key)))), strings.Split(path, "."))
			}
		}
		return nil
	}
	err := check("", tables)
	if keys, ok := tables["cloud_init"].(map[string]any); ok && err == nil {
		err = check("cloud_init", keys)
	}
	for _, table := range []string{"disks", "crucible", "nics"} {
		rows, _ := tables[table].([]any)
		for _, row := range rows {
			if keys, ok := row.(map[string]any); ok && err == nil {
				err = check(table, keys)
			}
		}
	}
	return err
}

func unknownKey(keys map[string][]string, line int, key []string) error {
	table := ""
	if len(key) > 1 {
		table = key[0]
	}
	return &DocumentError{Line: line, Key: strings.Join(key, "."), Message: "unknown key", Known: keys[table]}
}

func decodeJSON(data []byte, d *document, known map[string][]string) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(d)
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &DocumentError{Line: lineAt(data, broken.Offset), Message: broken.Error()}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &DocumentError{Line: lineAt(data, int64(len(data))), Message: "the document ends too early"}
	}
	if err := checkKeys(data, known); err != nil { // of a document whose nesting the decoder has bounded
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &DocumentError{Line: lineAt(data, wrong.Offset), Key: wrong.Field, Message: "want " + wrong.Type.String() + ", not " + wrong.Value}
	}
	if err != nil {
		return &DocumentError{Message: err.Error()}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &DocumentError{Line: lineAt(data, decoder.InputOffset()), Message: "more text after the document"}
	}
	return nil
}

// checkKeys walks the document's tokens: encoding/json can refuse unknown keys,
// but does not say where they stand.
func checkKeys(data []byte, keys map[string][]string) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var path []string // the keys that we are inside of
	var walk func(key string) error
	walk = func(key string) error {
		token, err := decoder.Token()
		if err != nil {
			return nil // decoding tells it better
		}
		switch token {
		case json.Delim('['):
			for decoder.More() {
				if err := walk(key); err != nil {
					return err
				}
			}
			_, _ = decoder.Token()
		case json.Delim('{'):
			seen := map[string]bool{}
			for decoder.More() {
				token, err := decoder.Token()
				name, ok := token.(string)
				if err != nil || !ok {
					return nil
				}
				if known, table := keys[key]; table && !slices.Contains(known, name) {
					return unknownKey(keys, lineAt(data, decoder.InputOffset()), append(path, name))
				}
				if seen[name] {
					return &DocumentError{Line: lineAt(data, decoder.InputOffset()), Key: strings.Join(append(path, name), "."), Message: "is there twice"}
				}
				seen[name] = true
				if len(path) == 0 && name == "spec" { // its keys are Propolis'
					var machine json.RawMessage
					_ = decoder.Decode(&machine)
					continue
				}
				path = append(path, name)
				if err := walk(name); err != nil {
					return err
				}
				path = path[:len(path)-1]
			}
			_, _ = decoder.Token()
		}
		return nil
	}
	return walk("")
}

func lineAt(data []byte, offset int64) int {
	end := min(offset, int64(len(data)), math.MaxInt32)
	return 1 + bytes.Count(data[:end], []byte("\n"))
}
