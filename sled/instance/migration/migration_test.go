package migration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
)

const (
	thisOne  = "11111111-1111-4111-8111-111111111111"
	otherOne = "22222222-2222-4222-8222-222222222222"
)

func vm(state string, in, out *propolis.Migration) VM {
	return VM{State: state, ID: "web1", Generation: 1, Migration: propolis.Migrations{In: in, Out: out}}
}

func phase(id, state string) *propolis.Migration { return &propolis.Migration{ID: id, State: state} }

// Where a machine is, as each side's Propolis says. What cannot be determined is never
// taken for an end.
func TestWhereaboutsByTheSource(t *testing.T) {
	silent := VM{Err: errors.New("no route to host")}
	for name, c := range map[string]struct {
		vm       VM
		ours, by Whereabouts // by this migration, and by any
	}{
		"it runs":                          {vm("Running", nil, nil), AtSource, AtSource},
		"it runs after another has failed": {vm("Running", nil, phase(otherOne, "Error")), AtSource, AtSource},
		"it runs after this has failed":    {vm("Running", nil, phase(thisOne, "Error")), AtSource, AtSource},
		"it reboots":                       {vm("Rebooting", nil, nil), AtSource, AtSource},
		"it moves":                         {vm("Migrating", nil, phase(thisOne, "RamPush")), OnTheWay, OnTheWay},
		"it has sent all":                  {vm("Migrating", nil, phase(thisOne, "Finish")), OnTheWay, OnTheWay},
		"it moves by another":              {vm("Migrating", nil, phase(otherOne, "RamPush")), OnTheWay, OnTheWay},
		"it stops, having moved":           {vm("Stopping", nil, phase(thisOne, "Finish")), AtTarget, AtTarget},
		"it is gone, having moved":         {vm("Destroyed", nil, phase(thisOne, "Finish")), AtTarget, AtTarget},
		"it is gone by another":            {vm("Destroyed", nil, phase(otherOne, "Finish")), Unclear, AtTarget},
		"it has ended by itself":           {vm("Destroyed", nil, nil), Unclear, Unclear},
		"it has failed":                    {vm("Failed", nil, phase(thisOne, "Error")), Unclear, Unclear},
		"there is none":                    {VM{Err: propolis.ErrNoInstance}, Unclear, Unclear},
		"nobody answers":                   {silent, Unclear, Unclear},
		"there is another machine":         {VM{State: "Running", ID: "db1"}, Unclear, Unclear},
	} {
		if ours, by := c.vm.OutOf("web1", thisOne), c.vm.OutOf("web1", ""); ours != c.ours || by != c.by {
			t.Errorf("%s: %d by this, %d by any; want %d, %d", name, ours, by, c.ours, c.by)
		}
	}
}

func TestWhereaboutsByTheTarget(t *testing.T) {
	for name, c := range map[string]struct {
		vm   VM
		want Whereabouts
	}{
		"there is none":                 {VM{Err: propolis.ErrNoInstance}, AtSource},
		"it was not asked":              {VM{}, AtSource},
		"nobody answers":                {VM{Err: errors.New("no route to host")}, Unclear},
		"it comes":                      {vm("Migrating", phase(thisOne, "RamPush"), nil), OnTheWay},
		"all of it has come":            {vm("Migrating", phase(thisOne, "Finish"), nil), OnTheWay},
		"it runs":                       {vm("Running", phase(thisOne, "Finish"), nil), AtTarget},
		"its guest has shut down since": {vm("Destroyed", phase(thisOne, "Finish"), nil), AtTarget},
		"it has failed since":           {vm("Failed", phase(thisOne, "Finish"), nil), AtTarget},
		"it could not be made":          {vm("Failed", phase(thisOne, "Sync"), nil), AtSource},
		"the migration broke off":       {vm("Failed", phase(thisOne, "Error"), nil), AtSource},
		"of an earlier try":             {vm("Failed", phase(otherOne, "Error"), nil), AtSource},
		"there is another machine":      {VM{State: "Running", ID: "db1"}, Unclear},
	} {
		if got := c.vm.Into("web1", thisOne); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Of another sled's sledctl nothing is believed that it has not said.
func TestAnswersOfATarget(t *testing.T) {
	const good = `{"apiVersion":"sledctl/v1","kind":"Instance","id":"web1","state":"running","migration":{"id":"` + thisOne + `","state":"arrived","peer":""}}`
	for name, c := range map[string]struct {
		out string
		ok  bool
	}{
		"the instance, arrived":    {good, true},
		"rebooting meanwhile":      {strings.Replace(good, "running", "rebooting", 1), true},
		"nothing":                  {"", false},
		"a banner":                 {"Welcome to sled2!\n" + good, false},
		"more than the instance":   {good + good, false},
		"another instance":         {strings.Replace(good, `"web1"`, `"db1"`, 1), false},
		"by another migration":     {strings.Replace(good, thisOne, otherOne, 1), false},
		"not arrived":              {strings.Replace(good, "arrived", "arriving", 1), false},
		"by no migration":          {`{"kind":"Instance","id":"web1","state":"running","migration":null}`, false},
		"of an older sledctl":      {`{"kind":"Instance","id":"web1","state":"running"}`, false},
		"a list":                   {`{"kind":"InstanceList","items":[` + good + `]}`, false},
		"what is no JSON any more": {good[:len(good)-1], false},
	} {
		if err := arrivalOf(Answer{Stdout: []byte(c.out)}, "web1", thisOne); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusalsOfATarget(t *testing.T) {
	told := func(exit int, left string) string {
		return fmt.Sprintf(`{"kind":"Error","exit":%d,"cause":"failed","message":"not today","left":%s,"hint":"repair it"}`, exit, left)
	}
	for name, c := range map[string]struct {
		answer  Answer
		err     error
		clean   bool
		message string
	}{
		"it has taken all back":           {Answer{Exit: 1, Stderr: []byte("sledctl: warning: x\n" + told(1, "[]") + "\n")}, nil, true, "sled2: not today"},
		"it refuses":                      {Answer{Exit: 8, Stderr: []byte(told(8, "[]"))}, nil, true, "sled2: not today"},
		"it has left something":           {Answer{Exit: 3, Stderr: []byte(told(3, `["zone z"]`))}, nil, false, "sled2: not today"},
		"another one is at work":          {Answer{Exit: 6, Stderr: []byte(told(6, "[]"))}, nil, false, "sled2: not today"},
		"it says another code":            {Answer{Exit: 255, Stderr: []byte(told(1, "[]"))}, nil, false, ""},
		"the connection is gone":          {Answer{Exit: 255, Stderr: []byte("Connection to sled2 closed by remote host.\n")}, nil, false, "sled2: Connection to sled2 closed by remote host."},
		"it says nothing":                 {Answer{Exit: 1}, nil, false, "sled2: exited with 1 and printed nothing"},
		"it was killed":                   {Answer{Exit: -1}, nil, false, "sled2: its sledctl was killed and printed nothing"},
		"it was killed after it had said": {Answer{Exit: -1, Stderr: []byte(told(1, "[]"))}, nil, false, ""},
		"there is no such program":        {Answer{Exit: -1}, errors.New("no such program"), true, "sled2: no such program"},
	} {
		got := refusalOf("sled2", c.answer, c.err)
		if got.clean() != c.clean || c.message != "" && got.Error() != c.message {
			t.Errorf("%s: clean %v: %v", name, got.clean(), got)
		}
		if refused := fault.Of(Rehearsed(got)) == fault.Refused; refused != (name == "it refuses") {
			t.Errorf("%s: its kind is %v", name, got.Kind())
		}
	}
}

// ssh passes its arguments to a shell, others get them unchanged.
func TestWordsForATarget(t *testing.T) {
	args := []string{"instance", "ensure", "--migrate-from", "[fd00::5]:12400"}
	for want, target := range map[string][]string{
		"ssh sled2 sledctl instance ensure --migrate-from '[fd00::5]:12400'":         {"ssh", "sled2", "sledctl"},
		"/usr/bin/ssh -p 7 sled2 x instance ensure --migrate-from '[fd00::5]:12400'": {"/usr/bin/ssh", "-p", "7", "sled2", "x"},
		"sledctl --host sim:b instance ensure --migrate-from [fd00::5]:12400":        {"sledctl", "--host", "sim:b"},
	} {
		if got := strings.Join(commandLine(target, args), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
