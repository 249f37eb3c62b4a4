package lattice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Machines are the names of the instances of a row: where a disk is shared, there
// are two.
func (r Row) Machines() []string {
	if r.Is(VMDisks) == Shared {
		return []string{"web1", "web2"}
	}
	return []string{"web1"}
}

// Size is the CPUs of a machine of the row, and its cap, on a command line.
func (r Row) Size() string {
	words := fmt.Sprint("--cpus ", r.CPUs())
	if r.CPUCap() != 0 {
		words += fmt.Sprint(" --cpu-cap ", r.CPUCap(), " --start-order ", *r.StartOrder())
	}
	return words
}

// Flags are what instance ensure is given next to the document.
func (r Row) Flags() string {
	switch r.Is(Protected) {
	case Yes:
		return " --protect"
	case No:
		return ""
	}
	r.missing(Protected)
	return ""
}

// Memory says whether the first of the machines cannot be made until the reservoir
// is enlarged.
func (r Row) Memory() (short bool) {
	return r.Is(Reservoir) == TooLittle || r.Is(Reservoir) == None && r.Is(Server) == OmicronBuild
}

type document struct {
	Name   string          `json:"name"`
	CPUs   int             `json:"cpus"`
	CPUCap float64         `json:"cpu_cap,omitempty"`
	Order  *int            `json:"start_order,omitempty"`
	Memory string          `json:"memory"`
	Disks  []disk          `json:"disks,omitempty"`
	NICs   []nic           `json:"nics,omitempty"`
	Spec   json.RawMessage `json:"spec,omitempty"`
	Remote []remote        `json:"crucible,omitempty"`

	CloudInit *cloudInit `json:"cloud_init,omitempty"`
}

// cloudInit is what a guest learns at its first boot.
type cloudInit struct {
	Hostname string   `json:"hostname"`
	SSHKeys  []string `json:"ssh_keys"`
	UserData string   `json:"user_data"`
}

// userData has what a Crucible disk has for a key as a password: the same search finds both.
const userData = "#cloud-config\npassword: " + CrucibleKey + "\n"

// sshKey is a public one.
const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"

type disk struct {
	Path     string `json:"path,omitempty"`
	ReadOnly bool   `json:"readonly,omitempty"`
	Image    string `json:"image,omitempty"`
	Size     string `json:"size,omitempty"`
	Thin     bool   `json:"thin,omitempty"`
	Follows  bool   `json:"delete_with_instance,omitempty"`
}

type nic struct {
	Over string `json:"over,omitempty"`
	VLAN int    `json:"vlan,omitempty"`

	MaxBW   int      `json:"max_bw,omitempty"`
	AllowIP []string `json:"allow_ip,omitempty"`

	OPTE   bool     `json:"opte,omitempty"`
	VNI    int      `json:"vni,omitempty"`
	IP     string   `json:"ip,omitempty"`
	Subnet string   `json:"subnet,omitempty"`
	Rules  []string `json:"rules,omitempty"`
	Routes []string `json:"routes,omitempty"`
}

// inVPC is a NIC of a machine in a VPC, in which each machine has an address of its own.
func inVPC(machine string) nic {
	sum := fnv.New32()
	sum.Write([]byte(machine))
	h := sum.Sum32()
	return nic{
		OPTE: true, VNI: 100, Subnet: "172.30.0.0/16", IP: fmt.Sprintf("172.30.%d.%d", 1+h%250, 2+h/250%250),
		Rules: []string{"dir=in action=allow priority=9 protocol=tcp port=22"}, Routes: []string{"0.0.0.0/0 ig"},
	}
}

// Document describes a machine of the row, as instance ensure -f reads it.
func (r Row) Document(name string) string {
	d := document{Name: name, CPUs: r.CPUs(), CPUCap: r.CPUCap(), Order: r.StartOrder(), Memory: "2G"}
	for n := range r.NICs() {
		card := nic{}
		if r.Is(NICs) == InVPC {
			d.NICs = append(d.NICs, inVPC(name))
			continue
		}
		if n > 0 {
			card.Over = "net1" // next to the guest link
		}
		if r.Is(Link) == VLAN {
			card.VLAN = 100 + n
		}
		if r.Is(NICs) == Held {
			card.MaxBW, card.AllowIP = heldMbps, heldIPs()
		}
		d.NICs = append(d.NICs, card)
	}
	switch r.Is(VMDisks) {
	case None:
	case File:
		d.Disks = []disk{{Path: volumes + "/" + name + ".img"}}
	case Zvol:
		d.Disks = []disk{{Path: r.volume(name)}}
	case Told:
		d.Disks = []disk{{Path: r.volume(name)}}
		d.CloudInit = &cloudInit{Hostname: "shop", SSHKeys: []string{sshKey}, UserData: userData}
	case ReadOnly:
		d.Disks = []disk{{Path: volumes + "/" + name + ".img"}, {Path: volumes + "/image.iso", ReadOnly: true}}
	case Shared:
		d.Disks = []disk{{Path: volumes + "/image.iso", ReadOnly: true}}
	case Made:
		d.Disks = []disk{{Size: "64M", Follows: true}, {Size: "1G", Thin: true, Follows: true}}
	case Cloned:
		d.Disks = []disk{{Image: image, Size: "64M", Follows: true}}
	case Crucible:
		d.Spec = r.distributed(name)
	case Remote:
		d.Remote = inCrucible(name)
	default:
		r.missing(VMDisks)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // of plain data
	}
	return string(text)
}

// NIC is what describes the n-th NIC of a machine of the row on a command line.
func (r Row) NIC(machine string, n int) string {
	if r.Is(NICs) == InVPC {
		card := inVPC(machine)
		plus := strings.NewReplacer(" ", "+")
		return fmt.Sprintf("--nic opte,vni=%d,ip=%s,subnet=%s,rule=%s,route=%s", card.VNI, card.IP, card.Subnet, plus.Replace(card.Rules[0]), plus.Replace(card.Routes[0]))
	}
	word := "--nic over=net0"
	if n > 0 {
		word = "--nic over=net1"
	}
	if r.Is(Link) == VLAN {
		word += fmt.Sprint(",vlan=", 100+n)
	}
	if r.Is(NICs) == Held {
		word += fmt.Sprint(",max-bw=", heldMbps) + ",allow-ip=" + strings.Join(heldIPs(), ",allow-ip=")
	}
	return word
}

// heldMbps and heldIPs are what a NIC that is held to limits may.
const heldMbps = 100

func heldIPs() []string { return []string{"10.9.0.5", "fd00:9::5"} }

// NICs is how many a machine of the row has.
func (r Row) NICs() (n int) {
	if _, err := fmt.Sscan(r.Is(NICs), &n); err != nil {
		r.missing(NICs)
	}
	return n
}

// CPUs are those of a machine of the row.
func (r Row) CPUs() (n int) {
	if _, err := fmt.Sscan(r.Is(CPUs), &n); err != nil {
		r.missing(CPUs)
	}
	return n
}

// StartOrder is that of a machine of the row which has a cap; nil: it has none.
func (r Row) StartOrder() *int {
	if r.CPUCap() == 0 {
		return nil
	}
	order := 10
	return &order
}

// CPUCap is how many processors a machine of the row keeps busy at most; 0: as many as it
// can.
func (r Row) CPUCap() float64 {
	if r.Is(CPUs) == Capped {
		return 1.5
	}
	return 0
}

// PoolName is Pool of a sled that is yet to be made: they are all the same.
func (r Row) PoolName() string {
	s := sim.New(r.Options(), hosttest.Files)
	defer s.Close()
	pool, err := r.Pool(context.Background(), s)
	if err != nil {
		panic(err) // of a sled in memory
	}
	return pool
}

// Extras are what a machine of the row has next to CPUs and NICs, on a command line,
// and what that reads from standard input. Pool is the row's.
func (r Row) Extras(name, pool string) (flags, input string) {
	switch r.Is(VMDisks) {
	case None:
		return "", ""
	case File:
		return "--disk " + volumes + "/" + name + ".img", ""
	case Zvol:
		return "--disk " + pool + volumes + "/" + name, ""
	case Told:
		return "--hostname shop --cloud-init - --disk " + pool + volumes + "/" + name, userData
	case ReadOnly:
		return "--disk " + volumes + "/" + name + ".img --disk " + volumes + "/image.iso,readonly", ""
	case Shared:
		return "--disk " + volumes + "/image.iso,readonly", ""
	case Made:
		return "--disk size=64M,delete-with-instance --disk size=1G,thin,delete-with-instance", ""
	case Cloned:
		return "--disk image=" + image + ",size=64M,delete-with-instance", ""
	case Crucible:
		return "--spec -", string(r.distributed(name))
	case Remote: // there are no flags for it, and those that there are lie over a document
		text, err := json.Marshal(map[string]any{"crucible": inCrucible(name)})
		if err != nil {
			panic(err) // of plain data
		}
		return "-f -", string(text)
	}
	r.missing(VMDisks)
	return "", ""
}

// image is what disks are cloned from.
const image = "debian-13"

// Import is the command line that makes the image which machines of the row need, and what it reads
// from standard input; empty: they need none. The sled is prepared.
func (r Row) Import() (line, input string) {
	if r.Is(VMDisks) != Cloned {
		return "", ""
	}
	return "image import - --size 128K --name " + image, strings.Repeat("what a disk begins with, a sector of 512 bytes..................", 8*256)
}

// volumes is where what machines have for disks is mounted.
const volumes = "/volumes"

func (r Row) volume(name string) string { return "/dev/zvol/rdsk/VOLUMES/" + name }

// distributed is a machine with a distributed disk, and with NICs of its own.
func (r Row) distributed(name string) json.RawMessage {
	region := fmt.Sprintf(`{"type":"region","block_size":4096,"blocks_per_extent":131072,"extent_count":4,"gen":1,"opts":{"id":"6f0f2f9f-7d3a-4d6e-8a55-0f5a1de3d1aa",
		"target":["[fd00:1122:3344:102::5]:19000","[fd00:1122:3344:103::5]:19000","[fd00:1122:3344:104::5]:19000"],"lossy":false,"flush_timeout":null,"key":%q,"cert_pem":null,"key_pem":null,"root_cert_pem":null,"control":null,"read_only":false}}`,
		CrucibleKey+"-"+name)
	request, err := json.Marshal(`{"type":"volume","id":"6f0f2f9f-7d3a-4d6e-8a55-0f5a1de3d1aa","block_size":4096,"sub_volumes":[` + region + `],"read_only_parent":null}`)
	if err != nil {
		panic(err)
	}
	parts := []string{
		`"com1":{"type":"serial_port","component":{"num":"com1"}}`,
		`"data":{"type":"nvme_disk","component":{"backend_id":"data-backend","pci_path":{"bus":0,"device":16,"function":0},"serial_number":[100,97,116,97,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}`,
		`"data-backend":{"type":"crucible_storage_backend","component":{"request_json":` + string(request) + `,"readonly":false}}`,
	}
	for n := range r.NICs() {
		parts = append(parts,
			fmt.Sprintf(`"net%d":{"type":"virtio_nic","component":{"backend_id":"net%d-backend","interface_id":"00000000-0000-4000-8000-00000000000%d","pci_path":{"bus":0,"device":%d,"function":0}}}`, n, n, n, 8+n),
			fmt.Sprintf(`"net%d-backend":{"type":"virtio_network_backend","component":{"vnic_name":"any%d"}}`, n, n))
	}
	return json.RawMessage(`{"board":{"chipset":{"type":"i440_fx","value":{"enable_pcie":false}},"cpus":` + fmt.Sprint(r.CPUs()) + `,"memory_mb":2048,"guest_hv_interface":{"type":"bhyve"}},"components":{` + strings.Join(parts, ",") + `}}`)
}

// remote is a volume in a Crucible, as a document has it.
type remote struct {
	ID           string   `json:"id"`
	Targets      []string `json:"targets"`
	BlockSize    string   `json:"block_size"`
	ExtentBlocks int      `json:"blocks_per_extent"`
	Extents      int      `json:"extents"`
	Key          string   `json:"key"`
}

// inCrucible is the volume of a machine, which no other one has.
func inCrucible(machine string) []remote {
	sum := fnv.New32()
	sum.Write([]byte(machine))
	key := fmt.Appendf(nil, "super secret of %-16s", machine)[:32]
	return []remote{{
		ID:        fmt.Sprintf("7c1e6dd0-2a5f-4f4c-9f0b-0000%08x", sum.Sum32()),
		Targets:   []string{"[fd00:1122:3344:102::5]:19000", "[fd00:1122:3344:103::5]:19000", "[fd00:1122:3344:104::5]:19000"},
		BlockSize: "4K", ExtentBlocks: 16384, Extents: 160, Key: base64.StdEncoding.EncodeToString(key),
	}}
}

// CrucibleKey begins the key of each distributed disk, and of each volume in a Crucible: it is a
// secret, and stands nowhere in the open.
const CrucibleKey = "c3VwZXIgc2VjcmV0"

// Pool is where what machines have for disks lies: a U.2, else an M.2, else what
// the system was booted from. It is known once the sled is there.
func (r Row) Pool(ctx context.Context, s *sim.Sled) (pool string, err error) {
	pool = "rpool"
	err = s.World().View(ctx, func(tx *world.Tx) error {
		for _, kind := range []string{"m2", "u2"} {
			for _, d := range tx.State.Disks {
				if d.Kind == kind && d.Pool != "" {
					pool = d.Pool
				}
			}
		}
		return nil
	})
	return pool, err
}

// Input is the document of a machine, with the names that this sled gives.
func (r Row) Input(ctx context.Context, s *sim.Sled, name string) (string, error) {
	pool, err := r.Pool(ctx, s)
	return strings.ReplaceAll(r.Document(name), "VOLUMES", pool+volumes), err
}

// diskSteps lay out what machines have for disks: those of the row, and those of
// histories.
func (r Row) diskSteps(pool string) []step {
	if r.Has(VMDisks, None, Crucible, Made, Cloned, Remote) {
		return nil
	}
	block := strings.Repeat("0", 16)
	steps := []step{{line: "zfs create -o mountpoint=" + volumes + " " + pool + volumes}, {file: volumes + "/image.iso", text: block, mode: 0o444}}
	for _, name := range append(r.Machines(), "a", "b", "c") {
		if r.Has(VMDisks, Zvol, Told) {
			steps = append(steps, step{line: "zfs create -V 1g " + pool + volumes + "/" + name})
		} else {
			steps = append(steps, step{file: volumes + "/" + name + ".img", text: block, mode: 0o644})
		}
	}
	return steps
}
