package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// How many virtual CPUs a VM of the control plane may have is for its server to decide, which
// has the limit of its build: of one that refuses, the control plane reads that it failed, and
// the operator why.
func TestVCPUsOfEachBuildOfTheServer(t *testing.T) {
	for _, c := range []struct {
		build string
		cpus  int
		want  string
		why   string
	}{
		{world.OmicronBuild, 254, "running", ""},
		{world.DevelopmentBuild, 32, "running", ""},
		{world.DevelopmentBuild, 64, "failed", "32"},
	} {
		t.Run(fmt.Sprint(c.build, " ", c.cpus), func(t *testing.T) {
			o := sledtest.Small()
			o.Build, o.Processors = c.build, 256
			s := sledtest.New(t, o, sledtest.Flat+"\n[instance]\nreservoir = \"4G\"\n")
			s.Run("bootstrap")
			a := s.StartAgent(t, s.Host())
			vm, instance := uuid.NewString(), uuid.NewString()
			body := sledtest.VMBody(t, 48, instance, 10)
			body["vmm_spec"].(*spec.InstanceSpec).Board.CPUs = uint8(c.cpus)
			if status, answer := a.Send("PUT", "/vmms/"+vm, "48.0.0", body.Text(t)); status != 200 {
				t.Fatalf("register: %d %s", status, answer)
			}
			if status, now := a.Want(vm, "running"); status != 200 {
				t.Fatalf("run: %d %s", status, now)
			}
			a.Eventually(vm, c.want)
			if _, told := a.Ask("GET", "/vmms?instance_id="+instance, "48.0.0"); !strings.Contains(told, c.why) {
				t.Errorf("no reason with %q: %s", c.why, told)
			}
		})
	}
}
