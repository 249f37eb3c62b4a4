package api

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Restart says what proves the end of a VM whose sled does not answer, before the VM is
// started on another sled.
//
// +kubebuilder:validation:Enum=hold;power;storage;lease
type Restart string

// Evict says what a drain does with a VM.
//
// +kubebuilder:validation:Enum=migrate;stop;block
type Evict string

// The ways to evict a VM.
const (
	EvictMigrate Evict = "migrate" // moves it while it runs
	EvictStop    Evict = "stop"    // ends it, and starts it on another sled
	EvictBlock   Evict = "block"   // refuses, so that a drain waits for an operator
)

// VirtualMachineSpec is what a VM is wanted to be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.restart) || self.restart == 'hold' || !has(self.disks) || self.disks.all(d, !has(d.path) && !has(d.image) && !has(d.size))",message="a VM with a volume on its sled is restarted by policy hold only"
type VirtualMachineSpec struct {
	// Running is whether the VM is to run. Default: true.
	//
	// +kubebuilder:default=true
	// +optional
	Running *bool `json:"running,omitempty"`

	// Restart is what proves that the VM has ended when its sled does not answer: hold (its
	// sled only), power (the sled's BMC), storage (nothing: the next one takes its volumes over, which
	// are all in a Crucible) or lease (the guard of the sled). An outage of the fleet's own servers stops VMs with lease.
	//
	// +kubebuilder:default=hold
	// +optional
	Restart Restart `json:"restart,omitempty"`

	// Evict is what a drain of the sled does: migrate, stop or block.
	//
	// +kubebuilder:default=migrate
	// +optional
	Evict Evict `json:"evict,omitempty"`

	// CPUs is the number of virtual processors.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	CPUs int32 `json:"cpus"`

	// Memory is the guest's memory, in whole MiB.
	Memory resource.Quantity `json:"memory"`

	// Disks are the disks of the VM. Those that are not in a Crucible lie on its sled.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Disks []Disk `json:"disks,omitempty"`

	// NICs are the network interfaces of the guest.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	NICs []NIC `json:"nics,omitempty"`

	// CloudInit is what the guest configures itself by when it boots first.
	//
	// +optional
	CloudInit *CloudInit `json:"cloudInit,omitempty"`

	// NodeSelector restricts the sleds to those with these labels.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// PriorityClassName is the priority with which the VM is scheduled.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Disk is a disk of a VM: one that exists on its sled, one that is made with it, or one in a Crucible.
//
// +kubebuilder:validation:XValidation:rule="has(self.crucible) ? !has(self.path) && !has(self.image) && !has(self.size) && !has(self.pool) : has(self.path) != (has(self.image) || has(self.size))",message="want path, or image, size or both, or crucible"
type Disk struct {
	// Path is that of a disk that exists.
	//
	// +kubebuilder:validation:Pattern="^/"
	// +optional
	Path string `json:"path,omitempty"`

	// ReadOnly keeps the guest from writing to a disk that exists.
	//
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// Image is the image of the sled that the disk is cloned from.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// Size of a disk that is made.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// Pool that a disk is made on.
	//
	// +optional
	Pool string `json:"pool,omitempty"`

	// Crucible is a volume that the VM has wherever it runs.
	//
	// +optional
	Crucible *Crucible `json:"crucible,omitempty"`
}

// Crucible is a volume of one region in a Crucible. It is opened with the generation of the run.
type Crucible struct {
	// ID of the volume, a UUID.
	//
	// +kubebuilder:validation:Pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
	ID string `json:"id"`

	// Targets are where the three downstairs of its region listen, IP:PORT.
	//
	// +kubebuilder:validation:MinItems=3
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Pattern="^(\\[[0-9a-fA-F:.]+\\]|[0-9.]+):[0-9]+$"
	// +listType=atomic
	Targets []string `json:"targets"`

	// BlockSize is that with which the region was created, in bytes.
	//
	// +kubebuilder:validation:Minimum=512
	// +kubebuilder:validation:Maximum=131072
	BlockSize int64 `json:"blockSize"`

	// BlocksPerExtent is that with which the region was created.
	//
	// +kubebuilder:validation:Minimum=1
	BlocksPerExtent int64 `json:"blocksPerExtent"`

	// Extents is how many extents the region has.
	//
	// +kubebuilder:validation:Minimum=1
	Extents int32 `json:"extents"`

	// Secret is the name of the Secret in the namespace of the VM that has the key of the volume, as
	// key: 32 bytes in base64. Without one, the volume is not encrypted.
	//
	// +optional
	Secret string `json:"secret,omitempty"`
}

// SecretKey is what the key of a volume is called in its Secret.
const SecretKey = "key"

// Local reports whether the VM has a disk on its sled only.
func (s *VirtualMachineSpec) Local() bool {
	return slices.ContainsFunc(s.Disks, func(d Disk) bool { return d.Crucible == nil })
}

// Volumes are those in a Crucible to which the VM may write.
func (s *VirtualMachineSpec) Volumes() (ids []string) {
	for _, d := range s.Disks {
		if d.Crucible != nil && !d.ReadOnly {
			ids = append(ids, d.Crucible.ID)
		}
	}
	return ids
}

// NIC is a network interface of a guest.
type NIC struct {
	// Over is the link of the sled that it is made over.
	//
	// +kubebuilder:validation:MinLength=1
	Over string `json:"over"`

	// MAC is its address; without one it has one that stays.
	//
	// +kubebuilder:validation:Pattern="^([0-9a-f]{2}:){5}[0-9a-f]{2}$"
	// +optional
	MAC string `json:"mac,omitempty"`

	// VLAN is its tag; 0: none.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	VLAN int32 `json:"vlan,omitempty"`
}

// CloudInit is what a guest configures itself by.
type CloudInit struct {
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// +listType=atomic
	// +optional
	SSHKeys []string `json:"sshKeys,omitempty"`

	// UserData is read by everybody who may read the VM: no place for secrets.
	//
	// +optional
	UserData string `json:"userData,omitempty"`
}

// Ended is the proven end of a generation.
type Ended struct {
	Generation int64 `json:"generation"`

	// Proof is what proves it: confirmed, stated, power or lease. Of storage, the generation may
	// go on, and cannot write once the next one has opened its volumes.
	Proof string `json:"proof"`

	// By is who has stated that the sled is lost, if that is the proof.
	//
	// +optional
	By string `json:"by,omitempty"`

	// +optional
	Time metav1.Time `json:"time,omitempty"`
}

// Moving is a move of a VM that is under way: the generation after its own comes to another
// sled. Which of the two runs, only the sleds know.
type Moving struct {
	// Generation that comes to the target.
	Generation int64 `json:"generation"`

	// Migration is the name of the VirtualMachineMigration.
	Migration string `json:"migration"`

	// UID of the VirtualMachineMigration.
	UID types.UID `json:"uid"`

	// Source is the sled that the VM leaves.
	//
	// +optional
	Source string `json:"source,omitempty"`

	// Target is the sled that it comes to: the one that was asked for, or was chosen.
	//
	// +optional
	Target string `json:"target,omitempty"`

	// From is where the Propolis of the source listens, ADDRESS:PORT.
	//
	// +optional
	From string `json:"from,omitempty"`

	// Started is when the generation was raised.
	//
	// +optional
	Started metav1.Time `json:"started,omitempty"`
}

// The phases of a VM.
const (
	PhasePending   = "Pending"   // it has no sled yet
	PhaseStarting  = "Starting"  // its sled makes it
	PhaseRunning   = "Running"   // it runs
	PhaseMigrating = "Migrating" // it moves to another sled
	PhaseStopped   = "Stopped"   // it has ended, and is to
	PhaseUnknown   = "Unknown"   // its sled does not answer
)

// The conditions of a VM.
const (
	ConditionRunning = "Running" // its sled reports that it runs
	ConditionPlaced  = "Placed"  // its generation has a sled
	ConditionFenced  = "Fenced"  // the end of the generation before is proven
	ConditionAgreed  = "Agreed"  // its sled takes the generation; False: it has had a higher one
	ConditionRestart = "Restart" // restart counts as it is asked for; False: it counts as hold, and why
)

// Next is the generation that is raised next.
func (s *VirtualMachineStatus) Next() int64 { return max(s.Generation, s.Raised) + 1 }

// VirtualMachineStatus is what is known of a VM.
type VirtualMachineStatus struct {
	// Generation counts the runs of the VM. It is raised before a run is placed, and only
	// once the end of the run before is proven.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Raised is the highest generation that was ever raised. It is above Generation while the VM
	// moves, and after a move that failed: a sled may have had that one.
	//
	// +optional
	Raised int64 `json:"raised,omitempty"`

	// Moving is the move that the VM is in.
	//
	// +optional
	Moving *Moving `json:"moving,omitempty"`

	// Sled that the generation is placed on.
	//
	// +optional
	Sled string `json:"sled,omitempty"`

	// +optional
	Phase string `json:"phase,omitempty"`

	// PropolisID names the run to Propolis: it follows from the UID and the generation.
	//
	// +optional
	PropolisID string `json:"propolisID,omitempty"`

	// Ended is the last proven end.
	//
	// +optional
	Ended *Ended `json:"ended,omitempty"`

	// ObservedGeneration is the one of the spec that the status was made from.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VirtualMachine is a VM of a fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vm
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Sled",type=string,JSONPath=".status.sled"
// +kubebuilder:printcolumn:name="CPUs",type=integer,JSONPath=".spec.cpus"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=".spec.memory"
// +kubebuilder:printcolumn:name="Restart",type=string,JSONPath=".spec.restart",priority=1
// +kubebuilder:printcolumn:name="Run",type=integer,JSONPath=".status.generation",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 43",message="the name of a VM has at most 43 characters, as its runs are named by it"
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VirtualMachineSpec `json:"spec"`
	// +optional
	Status VirtualMachineStatus `json:"status,omitempty"`
}

// VirtualMachineList is a list of VMs.
//
// +kubebuilder:object:root=true
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}
