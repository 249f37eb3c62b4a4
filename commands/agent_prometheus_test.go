package commands_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/sledtest"
)

// freePort is an address of this machine on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// server is a Prometheus with the rules of the packages, whose alerts wait a second only.
type server struct {
	t  *testing.T
	at string
}

func startPrometheus(t *testing.T, agent, tokens string) server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed: Debian's package prometheus has it")
	}
	rules, err := os.ReadFile("../packaging/prometheus/sledctl.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yml": regexp.MustCompile(`for: [0-9]+m`).ReplaceAllString(string(rules), "for: 1s"),
		"prometheus.yml": fmt.Sprintf(`
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [rules.yml]
scrape_configs:
  - job_name: sledctl
    authorization: {credentials_file: %s}
    static_configs: [{targets: [%q]}]
`, tokens, agent),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := server{t: t, at: freePort(t)}
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.at)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
		_ = log.Close()
	})
	return s
}

// get asks its API, and gives the data of the answer; empty: it does not answer yet.
func (s server) get(path string) string {
	reply, err := http.Get("http://" + s.at + path)
	if err != nil {
		return ""
	}
	defer reply.Body.Close()
	var answer struct{ Data json.RawMessage }
	if json.NewDecoder(reply.Body).Decode(&answer) != nil {
		return ""
	}
	return string(answer.Data)
}

// awaits waits until what it answers about a path contains a text.
func (s server) awaits(path, text string) {
	s.t.Helper()
	said := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if said = s.get(path); strings.Contains(said, text) {
			return
		}
	}
	s.t.Fatalf("%s: no %s in %s", path, text, said)
}

func query(expression string) string { return "/api/v1/query?query=" + url.QueryEscape(expression) }

// scraped starts an agent on a sled, and a Prometheus that scrapes it, which it returns.
func scraped(t *testing.T, s *sledtest.Operator) server {
	t.Helper()
	const token = "reader-0123456789-0123456789-0123456789"
	dir, agent := t.TempDir(), freePort(t)
	for name, text := range map[string]string{"tokens": "reader " + token + "\n", "token": token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prometheus := startPrometheus(t, agent, filepath.Join(dir, "token"))
	go s.On(t.Context(), s.Host(), "agent --listen tcp:"+agent+" --token-file "+filepath.Join(dir, "tokens"))
	return prometheus
}

// A real Prometheus scrapes a real agent without an error, and raises the alert of what
// breaks on the sled, and no other.
func TestPrometheusScrapesAnAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for scrapes")
	}
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	s.Run("doctor")
	prometheus := scraped(t, s)
	prometheus.awaits(query("up"), `"1"]`)
	prometheus.awaits("/api/v1/targets", `"lastError":"","lastScrape`)
	prometheus.awaits(query(`sledctl_instances_up`), `"1"]`)
	prometheus.awaits(query(`sledctl_vm_cpu_seconds_total`), `"vm":"web1"`)
	prometheus.awaits(query(`sledctl_zones{state="running"}`), `"1"]`)
	prometheus.awaits(query(`sledctl_reap_objects{verdict="orphan"}`), `"0"]`)
	prometheus.awaits(query(`sledctl_doctor_check{check="kernel",result="ok"}`), `"1"]`)
	s.Run("instance ensure web2")
	prometheus.awaits(query(`sledctl_operation_duration_seconds_count{verb="instance ensure",result="ok"}`), `"1"]`)
	if alerts := prometheus.get("/api/v1/alerts"); alerts != `{"alerts":[]}` {
		t.Errorf("alerts of a sled that is well: %s", alerts)
	}

	s.Arm(world.Fault{Name: world.FaultOldKernel, Match: "uname"})
	if a := s.Try("doctor"); a.Exit != 8 {
		t.Errorf("doctor: exit %d", a.Exit)
	}
	prometheus.awaits(query(`ALERTS{alertstate="firing"}`), `"alertname":"SledctlDoctorFailed"`)
	prometheus.awaits(query(`ALERTS{alertstate="firing",alertname="SledctlDoctorFailed"}`), `"check":"kernel"`)
}

// firing is the question whether an alert fires. It does not: the answer is nothing.
func firing(alert string) string {
	return query(fmt.Sprintf(`ALERTS{alertstate="firing",alertname=%q}`, alert))
}

const nothing = `"result":[]`

// An alert fires when something breaks on the sled, and resolves when an operator has done what
// it says.
func TestAlertsFireAndResolve(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for scrapes")
	}
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 2, U2: 2}, "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	prometheus := scraped(t, s)
	prometheus.awaits(query("sledctl_instances_up"), `"1"]`)
	prometheus.awaits("/api/v1/alerts", `{"alerts":[]}`)

	s.Arm(world.Fault{Name: world.FaultCrash, Match: "propolis * GET instance", Times: 1})
	prometheus.awaits(firing("SledctlInstanceDown"), `"1"]`)
	s.Run("instance start --failed")
	prometheus.awaits(firing("SledctlInstanceDown"), nothing)

	onDisk(s, zfs.LoseDisk, "c2t0d0")
	prometheus.awaits(firing("SledctlPoolDown"), `"pool":"oxi_`)
	prometheus.awaits(firing("SledctlLedgerCopyMissing"), `"1"]`)
	onDisk(s, zfs.InsertDisk, "c2t0d0")
	for _, pool := range regexp.MustCompile(`oxi_\S+`).FindAllString(s.Run("storage list -H --columns name"), 2) {
		s.Command("zpool clear " + pool) // as docs/doctor.md says
	}
	prometheus.awaits(firing("SledctlPoolDown"), nothing)
	prometheus.awaits(firing("SledctlLedgerCopyMissing"), nothing)
	prometheus.awaits("/api/v1/alerts", `{"alerts":[]}`)
}

// onDisk pulls a disk, or puts it in.
func onDisk(s *sledtest.Operator, do func(*world.Tx, string) bool, name string) {
	s.T.Helper()
	err := s.World().Update(s.T.Context(), func(tx *world.Tx) error {
		if !do(tx, name) {
			return fmt.Errorf("there is no disk %s", name)
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}
