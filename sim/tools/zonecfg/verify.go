package zonecfg

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// verify checks the configuration and, to commit it, saves it (verify_func in
// zonecfg.c). What it finds decides: an error of an earlier command does not
// keep it from saving.
func (s *cfgSession) verify(save bool) {
	if s.readOnly() || !s.initialize(true) {
		return
	}
	v := cfgVerifier{s: s}
	if !v.whole() {
		return
	}
	for i := range s.config.Resources {
		v.resource(&s.config.Resources[i])
	}
	v.routers()
	v.rctls()
	if !s.global {
		s.fail("resource specification incomplete")
		v.note(zNotSpecific)
	}
	switch {
	case v.problem == "" && save:
		s.save()
	case v.problem != "" && save:
		s.zerr("Zone %s failed to verify", s.zone)
		fallthrough
	case v.problem != "":
		s.fail("%s: %s", s.zone, v.problem)
	}
}

// cfgVerifier keeps the first thing that is wrong.
type cfgVerifier struct {
	s       *cfgSession
	problem string
}

func (v *cfgVerifier) note(problem string) {
	if v.problem == "" {
		v.problem = problem
	}
}

// whole checks the zone as a whole; false if there is no use in going on.
func (v *cfgVerifier) whole() bool {
	s := v.s
	switch {
	case s.isGlobal:
	case s.config.Zonepath == "":
		s.fail("zonepath cannot be empty.")
		v.problem = zMissingResource
	case len(s.config.Zonepath) > zonepathMax:
		s.fail("zonepath not specified")
		v.problem = zMissingResource
	}
	if !slices.Contains(Brands(s.tx.State.Mode), s.config.Brand) && !s.isGlobal {
		s.zerr("%s: unknown brand.\n", s.zone)
		s.fail("%s: %s", s.zone, zInvalidDocument)
		return false
	}
	if bad := BadPrivilege(s.config.Globals["limitpriv"]); bad != "" {
		s.zerr("%s: invalid privilege: %s", s.zone, bad)
		return false
	}
	return true
}

// zonepathMax is MAXPATHLEN - 1: a longer one is there, and cannot be read.
const zonepathMax = 1023

// required notes a property that a resource must have.
func (v *cfgVerifier) required(r *world.Resource, names ...string) {
	for _, name := range names {
		if r.Get(name) == "" {
			v.s.fail("%s: %s not specified", r.Type, name)
			v.note(zMissingProperty)
		}
	}
}

func (v *cfgVerifier) resource(r *world.Resource) {
	switch r.Type {
	case "fs":
		v.required(r, "dir", "special", "type")
	case "net":
		v.net(r)
	case "rctl":
		v.required(r, "name")
		if len(r.Values("value")) == 0 {
			v.s.fail("rctl: no value specified")
			v.note(zMissingProperty)
		}
	case "attr":
		v.required(r, "name", "type", "value")
	case "dataset":
		v.required(r, "name")
		if name := r.Get("name"); name != "" && !validDatasetName(name) {
			v.s.fail("dataset: name invalid")
			v.note(zBadProperty)
		}
	case "admin":
		v.required(r, "user", "auths")
	}
}

// net checks what depends on the zone's kind of stack.
func (v *cfgVerifier) net(r *world.Resource) {
	s := v.s
	v.required(r, "physical")
	if !s.validPhysical(r.Get("physical")) {
		s.sawError = true
		v.note(zInvalid)
	}
	switch {
	case s.config.IPType == "shared":
		v.required(r, "address")
		if r.Get("allowed-address") != "" {
			s.fail("net: allowed-address cannot be specified for a shared IP type")
			v.note(zInvalid)
		}
	case r.Get("address") != "":
		s.fail("net: address cannot be specified for an exclusive IP type")
		v.note(zInvalid)
	}
}

// routers checks that an exclusive stack has a default router only on links
// that have an allowed address.
func (v *cfgVerifier) routers() {
	if v.s.config.IPType == "shared" {
		return
	}
	addressed := map[string]bool{}
	for _, r := range v.s.config.All("net") {
		if r.Get("allowed-address") != "" {
			addressed[r.Get("physical")] = true
		}
	}
	for _, r := range v.s.config.All("net") {
		if link := r.Get("physical"); r.Get("defrouter") != "" && !addressed[link] {
			v.s.fail("net: defrouter for %s cannot be specified without allowed-address for an exclusive IP type", link)
			v.problem = zInvalid
		}
	}
}

// rctls checks what excludes each other.
func (v *cfgVerifier) rctls() {
	s := v.s
	has := func(name string) bool {
		return slices.ContainsFunc(s.config.All("rctl"), func(r *world.Resource) bool { return r.Get("name") == name })
	}
	pset := s.hasResource("dedicated-cpu")
	class := s.config.Globals["scheduling-class"]
	if pset && has("zone.cpu-shares") {
		s.fail("rctl zone.cpu-shares and dedicated-cpu are incompatible.")
		v.note(zIncompatible)
	}
	if has("zone.cpu-shares") && class != "" && class != "FSS" {
		s.fail("WARNING: rctl zone.cpu-shares and scheduling-class=%s are incompatible", class)
		v.note(zIncompatible)
	}
	if pset && has("zone.cpu-cap") {
		s.fail("rctl zone.cpu-cap and the dedicated-cpu are incompatible.")
		v.note(zIncompatible)
	}
}

// validDatasetName is zfs_name_valid for a file system, as far as zonecfg
// meets it: components of the allowed characters, a pool at least.
func validDatasetName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.: ") != "" {
			return false
		}
	}
	return true
}

// BadPrivilege is the first privilege of a limit set that there is not, or
// that no zone may have (zonecfg_get_privset; privileges(7)).
func BadPrivilege(set string) string {
	if set == "" {
		return ""
	}
	for name := range strings.SplitSeq(set, ",") {
		plain := strings.TrimLeft(name, "!-")
		switch {
		case slices.Contains([]string{"default", "basic", "all", "none", "zone"}, plain):
		case !slices.Contains(privilegeNames(), plain):
			return plain
		case plain == name && slices.Contains(prohibitedPrivileges(), plain):
			return plain
		}
	}
	return ""
}

// prohibitedPrivileges are those that the brands forbid to their zones
// (config.xml of the brands in omniosorg/pkg5 and oxidecomputer/helios-omicron-brand).
func prohibitedPrivileges() []string {
	return []string{"dtrace_kernel", "proc_zone", "sys_config", "sys_devices", "sys_linkdir", "sys_net_config",
		"sys_res_config", "sys_suser_compat", "xvm_control", "virt_manage"}
}

// privilegeNames are those of privileges(7).
func privilegeNames() []string {
	return strings.Fields(`contract_event contract_identity contract_observer cpc_cpu dtrace_kernel dtrace_proc dtrace_user
		file_chown file_chown_self file_dac_execute file_dac_read file_dac_search file_dac_write file_downgrade_sl file_flag_set
		file_link_any file_owner file_read file_setid file_upgrade_sl file_write graphics_access graphics_map hyprlofs_control
		ipc_dac_read ipc_dac_write ipc_owner net_access net_bindmlp net_icmpaccess net_mac_aware net_mac_implicit
		net_observability net_privaddr net_rawaccess proc_audit proc_chroot proc_clock_highres proc_exec proc_fork proc_info
		proc_lock_memory proc_owner proc_prioup proc_priocntl proc_secflags proc_session proc_setid proc_taskid proc_zone
		sys_acct sys_admin sys_audit sys_config sys_devices sys_dl_config sys_flow_config sys_ib_config sys_ib_info
		sys_ip_config sys_ipc_config sys_iptun_config sys_linkdir sys_mount sys_net_config sys_nfs sys_ppp_config sys_res_bind
		sys_res_config sys_resource sys_share sys_smb sys_suser_compat sys_time sys_trans_label virt_manage xvm_control`)
}
