package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The phases of a maintenance.
const (
	MaintenanceDraining = "Draining" // VMs leave the sled
	MaintenanceReady    = "Ready"    // none is left: the sled may be worked on
	MaintenanceBlocked  = "Blocked"  // a VM cannot leave, and Reason says which
)

// ConditionEmpty is the condition of a maintenance: whether its sled has no VM.
const ConditionEmpty = "Empty"

// SledMaintenanceSpec is which sled is to be emptied.
//
// +kubebuilder:validation:XValidation:rule="self.sled == oldSelf.sled",message="the sled of a maintenance is not changed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.lost) || has(self.lost) && self.lost == oldSelf.lost",message="lost is a statement that is not changed: delete the maintenance, and state it again"
type SledMaintenanceSpec struct {
	// Sled is the name of the sled's Node.
	//
	// +kubebuilder:validation:MinLength=1
	Sled string `json:"sled"`

	// Note is for people.
	//
	// +optional
	Note string `json:"note,omitempty"`

	// Lost is your statement that the sled never runs again. The VMs that were on it are taken for
	// ended, whatever their restart is, as long as it does not answer. If it runs, they run twice.
	//
	// +optional
	Lost *Lost `json:"lost,omitempty"`
}

// Lost is a person's statement that a sled never runs again.
type Lost struct {
	// By is who states it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	By string `json:"by"`

	// How it is known, e.g. "the mainboard is on my desk".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	How string `json:"how"`
}

// SledMaintenanceStatus is how far a sled is emptied.
type SledMaintenanceStatus struct {
	// +optional
	Phase string `json:"phase,omitempty"`

	// Remaining is the number of VMs that are still on the sled.
	//
	// +optional
	Remaining int32 `json:"remaining,omitempty"`

	// +optional
	Reason string `json:"reason,omitempty"`

	// Stated is when it was first read that the sled is lost.
	//
	// +optional
	Stated *metav1.Time `json:"stated,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SledMaintenance empties a sled and keeps it empty until it is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Sled",type=string,JSONPath=".spec.sled"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Remaining",type=integer,JSONPath=".status.remaining"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type SledMaintenance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SledMaintenanceSpec `json:"spec"`
	// +optional
	Status SledMaintenanceStatus `json:"status,omitempty"`
}

// SledMaintenanceList is a list of maintenances.
//
// +kubebuilder:object:root=true
type SledMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SledMaintenance `json:"items"`
}
