package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompareIgnoresWhatServersFillInAndSpellAnew(t *testing.T) {
	const key = "44444444-4444-4444-8444-44444444444A"
	sent := sound()
	sent.Board.CPUID = nil
	sent.Board.Hypervisor = &Hypervisor{Type: HypervisorBhyve}
	sent.Components[key] = FileStorage{Path: "/x", BlockSize: 512}
	sent.Components["{"+id+"}"] = VirtioDisk{Backend: key, PCI: PCIPath{0, 22, 0}}
	sent.Components["boot-settings"] = BootSettings{[]BootEntry{{strings.ToUpper(id)}}}

	got := sound()
	got.Components[strings.ToLower(key)] = sent.Components[key]
	got.Components[id] = VirtioDisk{Backend: strings.ToLower(key), PCI: PCIPath{0, 22, 0}}
	got.Components["boot-settings"] = BootSettings{[]BootEntry{{id}}}
	if d := Compare(sent, got); d != nil {
		t.Error(d)
	}
}

func TestCompareIgnoresNull(t *testing.T) {
	const part = `"x":{"type":"file_storage_backend","component":{"path":"/x","readonly":false,"block_size":512%s}}`
	read := func(workers, rest string) InstanceSpec {
		var s InstanceSpec
		text := `{"board":{"cpus":1,"memory_mb":1,"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},"components":{` +
			strings.ReplaceAll(part, "%s", workers) + `}` + rest + `}`
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if d := Compare(read("", ""), read(`,"workers":null`, `,"smbios":null`)); d != nil {
		t.Error(d)
	}
}

func TestCompareTellsWhatDiffers(t *testing.T) {
	got := sound()
	got.Board.CPUs = 8
	got.Board.CPUID.Entries[0].EAX = 1
	got.SMBIOS = &SMBIOS{Manufacturer: "Acme"}
	got.Components["boot"] = NVMeDisk{Backend: "boot-backend", PCI: PCIPath{0, 17, 0}}
	got.Components["net0"] = VirtioDisk{Backend: "net0-backend", PCI: PCIPath{0, 8, 0}}
	delete(got.Components, "pvpanic")
	var lines []string
	for _, d := range Compare(sound(), got) {
		lines = append(lines, shown(d))
	}
	want := []string{
		"board.cpuid.entries[0].eax: 1, not 0",
		"board.cpus: 8, not 4",
		"components.boot.component.pci_path.device: 17, not 16",
		`components.net0.component.interface_id: absent, not "` + id + `"`,
		`components.net0.type: "virtio_disk", not "virtio_nic"`,
		`components.pvpanic: absent, not {"component":{"enable_isa":true},"type":"qemu_pvpanic"}`,
		`smbios: {"manufacturer":"Acme","product_name":"","serial_number":"","version":0}, not absent`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestCompareKeepsLargeNumbersApart(t *testing.T) {
	sent, got := sound(), sound()
	sent.Board.MemoryMiB, got.Board.MemoryMiB = 1<<60, 1<<60+1
	if d := Compare(sent, got); len(d) != 1 {
		t.Error(d)
	}
}

// shown is a difference with both values.
func shown(d Difference) string {
	return fmt.Sprintf("%s: %s, not %s", d.Path, orAbsent(d.Got), orAbsent(d.Sent))
}

func orAbsent(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}
