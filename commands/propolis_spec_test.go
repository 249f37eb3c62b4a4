package commands_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// The verbs on a machine that has a part of each kind: newSled holds what they
// say to its Propolis to the published documents.
func TestTheVerbsOnAMachineThatWasWrittenDown(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.WriteFile("/vms/a.img", "")
	s.WriteFile("/vms/b.img", "")
	config := filepath.Join(t.TempDir(), "m.toml")
	text := "[main]\nboot_order = [\"44444444-4444-4444-8444-44444444444A\"]\n[[pci_bridge]]\npci-path = \"0.20.0\"\ndownstream-bus = 1\n" +
		"[block_dev.b]\ntype = \"file\"\npath = \"/vms/b.img\"\nworkers = 4\n" +
		"[dev.44444444-4444-4444-8444-44444444444A]\ndriver = \"pci-virtio-block\"\nblock_dev = \"b\"\npci-path = \"0.4.0\"\n" +
		"[dev.net0]\ndriver = \"pci-virtio-viona\"\nvnic = \"x\"\npci-path = \"1.8.0\"\n" +
		"[dev.sock]\ndriver = \"pci-virtio-socket\"\nguest_cid = 16\npci-path = \"0.25.0\"\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	for _, line := range []string{
		"instance ensure web1 --disk /vms/a.img --nic over=net0", "instance ensure web2 --spec " + config, "instance ensure web2 --spec " + config,
		"propolis get --instance web1", "propolis reboot --instance web1", "propolis spec show web2 --running", "propolis spec diff web2 --detailed-exitcode",
		"instance list", "instance reboot web2", "propolis stop --instance web2", "instance stop web2", "instance delete web1",
	} {
		s.Run(line)
	}
}
